"""Fixtures of the reading tests: traces written without a tracer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

T0 = 10**12


@pytest.fixture(autouse=True)
def _native(native_in_process: None) -> None:
    """Load the native files: all these tests call the package."""


def pair(ticks: int, lock: int = 0x4040, site: int = 5) -> list[Event]:
    """Return the events of a thread that takes and releases a lock."""
    return [
        Event(ticks, "MUTEX_TAKEN", lock, site, cpu=1),
        Event(ticks + 50, "MUTEX_FREE", lock, site, cpu=1),
    ]


def small(path: Path) -> Builder:
    """Return a trace with every kind of field, two threads and several packets."""
    made = Builder(path, frequency=2_999_999_123)
    made.thread(
        101,
        [
            Event(
                T0, "THREAD_BEGIN", 0x7F0011, 0,
                fields={"start_routine": 0x1234, "creator": 100, "serial": 1},
            ),
            *pair(T0 + 100),
            *pair(T0 + 500),
            Event(
                T0 + 600, "COND_TIMEDWAIT_IN", 0x4080, 7,
                fields={"mutex": 0x4040, "deadline_ns": 12345},
            ),
            Event(
                T0 + 2_000_000, "COND_TIMEDWAIT_OUT", 0x4080, 7,
                fields={"result": 110, "wait_ns": 666_000},
            ),
            Event(T0 + 2_000_100, "THREAD_NAME", 0x7F0011, fields={"name": "wörker-one".encode()}),
            Event(
                T0 + 2_000_200, "USER",
                fields={"user_domain": 1, "user_event": 2, "data": b'hello "w"\n\xff' * 9},
            ),
        ],
        [
            Event(
                T0 + 2_100_000, "MUTEX_TAKEN", 0x4040, 9, variant="WAITED",
                fields={"result": 0, "wait_ns": 1500},
            ),
            Event(T0 + 2_200_000, "COND_SIGNAL_OUT", 0x4080, 5, fields={"result": -1}),
        ],
    )  # fmt: skip
    made.thread(102, pair(T0 + 200) + pair(T0 + 300), pair(T0 + 3 * 10**9))
    made.processes = [
        {
            "process": {
                "index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x", "-y"],
            }
        },
        {"sites": {"process": 0, "sites": {"5": "0x401000", "7": "0x401100", "9": "0x401200"}}},
        {"thread": {"process": 0, "tid": 102, "name": "helper"}},
    ]  # fmt: skip
    return made


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    """A small trace on disk."""
    return small(tmp_path / "small.ptt").write()
