"""Fixtures of the corpus: its programs, compiled, recorded and checked."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.corpus.checking import Checker
from tests.corpus.programs import NOT_HERE, Build, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.corpus.checking import Checked
    from tests.support import Ptt


@pytest.fixture(scope="session")
def build(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Build]:
    """The programs of the selected tests, compiled ahead of them."""
    parameters = [
        item.callspec.params.get("program")
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    wanted = [program for program in parameters if isinstance(program, Program)]
    build = Build(tmp_path_factory.mktemp("corpus"), wanted)
    yield build
    build.close()


@pytest.fixture
def checked(
    ptt: Ptt, build: Build, tmp_path: Path, native_in_process: None
) -> Callable[..., Checked]:
    """Recorder and checker: `checked(program, "-l", "3").findings`."""

    def checked(program: Program, *options: str) -> Checked:
        if shutil.which(program.compiler) is None:
            pytest.skip(f"{program.compiler}: not installed")
        came = Checker(ptt, build, tmp_path)(program, *options)
        if came.came.status == NOT_HERE:
            pytest.skip("the machine does not let the program do what it is for")
        assert came.came.status == program.status, came.came.printed
        return came

    return checked
