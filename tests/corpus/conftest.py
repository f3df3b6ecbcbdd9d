"""Fixtures of the corpus: its programs, recorded and checked."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.corpus.programs import NOT_HERE, Build, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.corpus.programs import Came, Program
    from tests.support import Ptt

__all__ = ["Checked", "Checker"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What `ptt check` says of a recorded program.

    Attributes:
        program: The program.
        came: What came of its run.
        status: The exit status of `ptt check`.
        findings: As its JSON has them.
    """

    program: Program
    came: Came
    status: int
    findings: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Checker:
    """Records programs and checks the traces.

    Attributes:
        ptt: The runner to record with.
        build: Of the programs.
        directory: Where the traces go.
    """

    ptt: Ptt
    build: Build
    directory: Path

    def __call__(self, program: Program, *options: str) -> Checked:
        """Record a program with these options of `ptt record`, and check the trace."""
        trace = self.directory / "run.ptt"
        path = str(self.build(program))
        command = self.ptt.command("record", "-o", trace, *options, "--", path)
        came = run(program, command, env=self.ptt.environment())
        if came.status == NOT_HERE:
            pytest.skip("the machine does not let the program do what it is for")
        assert came.status == program.status, came.said
        status, findings = check(trace, *program.options)
        return Checked(program, came, status, findings)


def check(trace: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """Return exit status and findings of `ptt check`, run in this process to save its start."""
    from nptltrace.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["check", "--format", "json", *options, str(trace)])
    return status, json.loads(out.getvalue())["findings"]


@pytest.fixture(scope="session")
def build(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Build]:
    """Programs that the selected tests want, compiled ahead of them."""
    wanted: list[Program] = [
        cast("Program", item.callspec.params["program"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "build" in item.fixturenames
    ]
    build = Build(tmp_path_factory.mktemp("corpus"), wanted)
    yield build
    build.close()


@pytest.fixture
def checked(
    ptt: Ptt, build: Build, tmp_path: Path, native_stage: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Checker]:
    """Recorder and checker: `checked(program, "-l", "3").findings`."""
    from nptltrace import _paths
    from nptltrace.cli import command_names

    if "check" not in command_names():
        pytest.skip("there is no `ptt check`")
    with monkeypatch.context() as patch:
        patch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        _paths.native_dir.cache_clear()
        yield Checker(ptt, build, tmp_path)
    _paths.native_dir.cache_clear()
