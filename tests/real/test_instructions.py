"""No event takes more instructions than the agreed number, on a machine of any speed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.real.real import need
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Ptt


def compiler() -> str:
    done = subprocess.run(["cc", "-dumpversion"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_no_event_takes_too_many_instructions(ptt: Ptt) -> None:
    need("valgrind")
    if compiler() != "12" or os.uname().machine != "x86_64":
        pytest.skip("the figures are those of another compiler")
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "instructions.py"],
        env=ptt.environment(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
