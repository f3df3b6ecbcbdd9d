"""Functions of Python in stacks cost little, in instructions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.real.real import need
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Recorder

PROGRAM = ROOT / "tests" / "programs" / "python_ping_pong.py"
# Of the instructions outside the kernel, which has more to do to switch threads than both.
# How often threads wait, and so how many stacks there are, is not the same twice. Under valgrind
# time goes by fifty times as fast: each acquisition has a stack, as else one of several has.
BOUND = 1.35


def instructions(record: Recorder, log: Path, python: str, depth: str) -> int:
    counter = (
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        f"--log-file={log}",
    )
    record(
        *counter, "/usr/bin/python3", PROGRAM, "1000", depth, options=("--python", python),
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", log.read_text(encoding="utf-8"))
    assert found
    return int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("depth", ["0", "16"])
def test_instructions(depth: str, record: Recorder, tmp_path: Path) -> None:
    need("valgrind")
    without, with_python = (
        instructions(record, tmp_path / python, python, depth) for python in ("off", "auto")
    )
    assert with_python < BOUND * without
