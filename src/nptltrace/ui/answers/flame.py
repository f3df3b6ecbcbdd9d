"""The flame graph of waiting: stacks with their times, and the threads that they are of."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.report.stacks.sums import TITLES, stack_sums
from nptltrace.analysis.sql.tables import TraceTables
from nptltrace.analysis.stack_names import UNKNOWN, Frames
from nptltrace.trace.traceset import Traceset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nptltrace.analysis.model import Window
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.stack_names import Frame
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.ui import protocol

__all__ = ["MAX_STACKS", "flame", "with_threads"]

# How many stacks are listed at most.
MAX_STACKS = 5000


def flame(
    paths: Sequence[Path],
    symbols: Symbols,
    window: Window,
    shown: StackMeasure,
    step: Callable[[float], None],
) -> protocol.Flame:
    """Return the stacks of a range; of each thread those with most time first.

    Args:
        paths: The traces.
        symbols: Names addresses of the same traces.
        window: The range.
        shown: What is added up.
        step: Called back now and then.
    """
    # Closed at once: thousands of threads have as many files, and each is mapped into memory.
    with closing(Traceset(*paths)) as traceset:
        return _flame_of(traceset, symbols, window, shown, step)


def _flame_of(
    traceset: Traceset,
    symbols: Symbols,
    window: Window,
    shown: StackMeasure,
    step: Callable[[float], None],
) -> protocol.Flame:
    tables = TraceTables(traceset, symbols.of(traceset), Scope(window))
    end = max(traceset.end_ns() or 0, 1)
    read = stack_sums(tables, shown, ("process", "tid"), step=lambda t: step(min(t / end, 1.0)))
    sums = read.to_pylist()
    processes = tables.table("processes", ["process", "pid"]).to_pylist()
    pids = {row["process"]: row["pid"] for row in processes}
    stacks = Frames(tables)
    numbers: dict[Frame, int] = {}
    found: dict[tuple[int, ...], protocol.FlameStack] = {}
    for row in sums:
        frames = stacks.of(row["stack_id"]) or (UNKNOWN,)
        key = tuple(numbers.setdefault(frame, len(numbers)) for frame in frames)
        one = found.setdefault(key, {"frames": list(key), "count": 0, "ns": 0, "threads": []})
        one["count"] += row["count"]
        one["ns"] += row["ns"]
        one["threads"].append(
            {"row": 0, "pid": pids.get(row["process"], 0), "tid": row["tid"] or 0, "ns": row["ns"]}
        )
    return {
        "title": TITLES[shown],
        "frames": [
            {"name": frame.name, "text": frame.text, "module": frame.module} for frame in numbers
        ],
        "stacks": sorted(found.values(), key=lambda one: -one["ns"]),
        "count": sum(row["count"] for row in sums),
        "ns": sum(row["ns"] for row in sums),
    }


def with_threads(
    found: protocol.Flame, row_of: Callable[[int, int], int], limit: int
) -> protocol.Flame:
    """Return it with the rows of its threads.

    Args:
        found: The stacks.
        row_of: The row of a thread by process and thread id; 0 where it has none.
        limit: How many stacks to list.
    """
    return {
        **found,
        "stacks": [
            {
                **stack,
                "threads": [
                    {**thread, "row": row_of(thread["pid"], thread["tid"])}
                    for thread in stack["threads"]
                ],
            }
            for stack in found["stacks"][:limit]
        ],
    }
