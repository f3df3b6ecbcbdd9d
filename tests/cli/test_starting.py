"""The start of `ptt`: no more threads than are at work, and programs do not notice."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# As it is unless a user has chosen something.
UNSET = {"OPENBLAS_NUM_THREADS": None}
PROGRAM = """
import atexit, os, sys
from nptltrace.cli import entry

atexit.register(lambda: print("numpy" in sys.modules, len(os.listdir("/proc/self/task"))))
entry()
"""


def test_libraries_start_no_thread_for_each_processor(ptt: Ptt, record: Recorder) -> None:
    trace = record("true")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "stat", trace],
        env=ptt.environment(UNSET), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "True 1"


def test_a_program_does_not_get_what_keeps_them_from_it(ptt: Ptt, tmp_path: Path) -> None:
    program = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    command = ["record", "-o", str(tmp_path / "run.ptt"), sys.executable, "-c", program]
    said = ptt(*command, env=UNSET).stdout
    assert said.splitlines() == ["None"]
