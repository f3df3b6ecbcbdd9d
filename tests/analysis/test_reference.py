"""The model agrees with the slow reference on recorded programs, event for event."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.analysis.compare import assert_same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Recorder

pytestmark = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")

PROGRAMS = ["barrier", "c11", "cancel", "children", "contention", "futex", "once", "rwlock", "sem",
            "signal_storm", "spin"]  # fmt: skip


@pytest.mark.parametrize("level", ["1", "2", "3"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, level: str, program: Callable[[str], Path], record: Recorder) -> None:
    assert_same(record(program(name), options=("-l", level), status=None))


@pytest.mark.parametrize("seed", range(1, 10))
def test_a_bit_of_everything(seed: int, program: Callable[[str], Path], record: Recorder) -> None:
    level = str(1 + seed % 3)
    trace = record(program("mix"), str(seed), "300", options=("-l", level))
    assert len(assert_same(trace)) >= 4


def test_killed_while_hung(program: Callable[[str], Path], record: Recorder) -> None:
    trace = record(
        "timeout", "--signal=KILL", "0.5", program("deadlock"), options=("-l", "2"), status=None
    )
    assert assert_same(trace)["contended"] == 3
