"""Without Python libraries, recording works, and other commands name the missing library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from nptltrace.cli.missing import LIBRARIES
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Result

# -I -S: Python can import only the standard library. The other lines are the steps of `ptt`.
ALONE = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from nptltrace.cli import entry
sys.argv = ["ptt", *sys.argv[1:]]
entry()
"""
READING = [
    ["check"], ["report"], ["top"], ["verify"], ["sql", "select 1"], ["cut", "-o", "out"],
    ["ui", "--no-browser"], ["export", "--format", "parquet", "-o", "out"],
]  # fmt: skip


def alone(ptt: Ptt, *args: str, status: int = 0, cwd: Path | None = None) -> Result:
    """Run `ptt ARGS` with the standard library alone."""
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, *args],
        env=clean_environment(NPTLTRACE_NATIVE_DIR=str(ptt.native)),
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == status, result.stderr
    return result


@pytest.fixture
def recorded(ptt: Ptt, tmp_path: Path) -> Path:
    """A trace, recorded with the standard library alone."""
    trace = tmp_path / "run.ptt"
    message = alone(ptt, "record", "-o", str(trace), "--", "/bin/true").stderr
    assert re.search(r"^ptt: recorded \d+ events from 1 process, ", message, re.MULTILINE)
    return trace


def test_a_trace_recorded_without_libraries_is_readable(ptt: Ptt, recorded: Path) -> None:
    assert "1 process" in ptt("stat", recorded).stdout
    assert "1 process" in alone(ptt, "stat", str(recorded)).stdout


def test_recording_needs_no_library(ptt: Ptt, recorded: Path) -> None:
    assert alone(ptt, "record", "--help").stdout
    assert alone(ptt, "config", "--libdir").stdout == f"{ptt.native}/lib\n"
    assert alone(ptt, "recover", str(recorded)).stderr == ptt("recover", recorded).stderr
    refused = alone(ptt, "level", str(os.getpid()), "2", status=2).stderr
    assert refused.startswith(f"ptt: error: process {os.getpid()} is not being recorded: ")


def test_recording_exits_with_the_status_of_the_program(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PTT_BUNDLE")  # to keep names of the program takes libraries
    command = ["sh", "-c", f"{program('mutex_kinds')}; exit 3"]
    said = alone(ptt, "record", "-o", str(tmp_path / "run.ptt"), "--", *command, status=3).stderr
    assert re.search(
        r"^ptt: no names are kept in the trace: \w+ is not installed$", said, re.MULTILINE
    )
    assert re.search(r"^ptt: recorded \d+ events", said, re.MULTILINE)


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_reading_names_the_package_to_install(
    ptt: Ptt, recorded: Path, tmp_path: Path, command: list[str]
) -> None:
    name, *rest = command
    message = alone(ptt, name, str(recorded), *rest, status=2, cwd=tmp_path).stderr
    wanted = " ".join(LIBRARIES.values())
    assert re.fullmatch(
        rf"ptt: error: (\w+) is not installed, which reading traces needs: pip install {wanted}\n",
        message,
    )


@pytest.mark.parametrize(
    ("module", "command"),
    [("duckdb", ["sql", "select 1"]), ("rich", ["top"]), ("uvicorn", ["ui", "--no-browser"])],
    ids=["duckdb", "rich", "uvicorn"],
)
def test_a_single_missing_library_is_named(
    ptt: Ptt, recorded: Path, module: str, command: list[str]
) -> None:
    hidden = f"import sys; sys.modules[{module!r}] = None; from nptltrace.cli import entry; entry()"
    name, *rest = command
    result = subprocess.run(
        [sys.executable, "-c", hidden, name, str(recorded), *rest],
        env=ptt.environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 2
    assert re.fullmatch(rf"ptt: error: .+ not installed.*: pip install {module}\n", result.stderr)


def test_every_dependency_has_a_hint() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.match(r"[\w-]+", item)[0] for item in project["dependencies"]}  # type: ignore[index]
    assert names == set(LIBRARIES.values())
