"""The same programs recorded: the ring handler keeps all events the counting handler counts."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder
    from tests.tracer.counted import Runner

Event = dict[str, Any]


@pytest.fixture
def recorded(ptt: Ptt, record: Recorder) -> Callable[..., list[Event]]:
    """Recorder of events: `recorded(program("sem"), level=3)`."""

    def run(*command: str | Path, level: int) -> list[Event]:
        trace = record(*command, options=("-l", str(level)))
        assert json.loads(ptt("stat", "--format", "json", trace).stdout)["lost"] == 0
        text = ptt("view", "--format", "jsonl", trace).stdout
        return [json.loads(line) for line in text.splitlines()]

    return run


@pytest.mark.parametrize("name", ["rwlock", "spin", "barrier", "sem", "c11", "futex", "cancel"])
def test_the_ring_keeps_every_event(
    name: str,
    traced: Runner,
    recorded: Callable[..., list[Event]],
    program: Callable[[str], Path],
) -> None:
    events = recorded(program(name), level=3)
    counted = traced(program(name), level=3).only.names()
    names = Counter(event["event"] for event in events)
    # The number of sleeps until something has happened differs in each run.
    assert _without_sleeps(names) == _without_sleeps(counted)


def _without_sleeps(counts: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in counts.items() if not name.startswith("SYS_")}


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone", "syscall_clone"])
def test_children_write_as_themselves(
    how: str, recorded: Callable[..., list[Event]], program: Callable[[str], Path]
) -> None:
    events = recorded(program("children"), how, "20", level=2)
    children = [event["child"] for event in events if event["event"] == "PROCESS_FORK"]
    assert len(set(children)) == 20
    for child in children:
        names = [event["event"] for event in events if event["pid"] == child]
        assert names[0] == "PROCESS_START"
        assert names.count("MUTEX_TAKEN") == names.count("MUTEX_FREE") == 1
        assert names.count("RWLOCK_TAKEN_WRITE") == (how == "fork")
        assert {event["tid"] for event in events if event["pid"] == child} == {child}
