"""Traces of any events in any order, of four threads and three objects; no program makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from nptltrace.catalog import EVENTS
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from nptltrace.catalog import EventType

__all__ = ["Steps", "any_steps", "write_steps"]

T0 = 10**12

Steps = list[tuple[int, int, "EventType", int, int]]


def any_steps(
    *, without: Collection[str], gaps: st.SearchStrategy[int], values: Sequence[int], most: int
) -> st.SearchStrategy[Steps]:
    """Return a strategy for at most `most` steps: thread, gap, event type, object, field value.

    Args:
        without: Domains to leave out.
        gaps: Time before an event, in nanoseconds.
        values: Values of the fields: results, counts, serial numbers, owners.
        most: Largest number of steps.
    """
    types = [event for event in EVENTS if event.domain not in without]
    step = st.tuples(
        st.integers(0, 3),
        gaps,
        st.sampled_from(types),
        st.integers(0, 2),
        st.sampled_from(values),
    )
    return st.lists(step, min_size=1, max_size=most)


def _fields(event: EventType, gap: int, value: int) -> dict[str, int]:
    most = {"u8": 0x7F, "u16": 0xFFFF}
    fields = {f.name: value & most.get(f.type, -1) for f in event.fields if f.type != "bytes"}
    if "owner" in fields and value:
        fields["owner"] = 100 + value % 5
    if "mutex" in fields:
        fields["mutex"] = 0x4040
    if "wait_ns" in fields:
        fields["wait_ns"] = gap
    return fields


def write_steps(path: Path, steps: Steps) -> Path:
    """Write the trace of these steps; leave out threads without a step."""
    made = Builder(path)
    now, threads = T0, [made.thread(101 + n, []) for n in range(4)]
    for thread, gap, event, number, value in steps:
        now += gap
        threads[thread].packets[0].append(
            Event(now, event.name, 0x4040 + 64 * number, thread + 1, variant=event.variant,
                  fields=_fields(event, gap, value))
        )  # fmt: skip
    made.threads = [thread for thread in threads if thread.packets[0]]
    return made.write()
