"""Events of the scheduler do not drown the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


@pytest.fixture
def trace(trace_dir: Path) -> Path:
    """Return a trace of one lock and two events of the scheduler."""
    names = ("SCHED_SWITCHED", "MUTEX_TAKEN", "SCHED_IN", "MUTEX_FREE")
    made = Builder(trace_dir)
    made.thread(1, [Event(10**12 + n, name, 64, 5) for n, name in enumerate(names)])
    return made.write()


@pytest.mark.parametrize(
    ("options", "events"),
    [
        ([], 2),
        (["--all"], 4),
        (["--tid", "1"], 2),
        (["--event", "SCHED"], 2),
        (["--event", "SCHED,MUTEX"], 4),
        (["--suffix", "_IN"], 1),
        (["--format", "raw"], 4),
        (["--format", "jsonl"], 4),
    ],
)
def test_text_leaves_them_out(ptt: Ptt, trace: Path, options: list[str], events: int) -> None:
    assert len(ptt("view", *options, trace).stdout.splitlines()) == events
