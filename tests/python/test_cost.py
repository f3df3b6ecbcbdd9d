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
# The bound is for instructions outside the kernel. The kernel takes more for thread switches.
# The number of waits, and so of stacks, differs between runs. Under valgrind, time passes fifty
# times as fast: each acquisition has a stack, but without valgrind only some acquisitions have
# stacks.
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
def test_stacks_of_python_cost_few_instructions(
    depth: str, record: Recorder, tmp_path: Path
) -> None:
    need("valgrind")
    without, with_python = (
        instructions(record, tmp_path / python, python, depth) for python in ("off", "auto")
    )
    assert with_python < BOUND * without
