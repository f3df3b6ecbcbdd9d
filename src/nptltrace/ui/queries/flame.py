"""The flame graph of waiting: stacks with their times and their threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.report.stacks.sums import TITLES, stack_sums
from nptltrace.analysis.stack_names import UNKNOWN, Frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.analysis.answers import Answers
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.analysis.stack_names import Frame
    from nptltrace.ui import protocol

__all__ = ["MAX_STACKS", "flame", "with_threads"]

# How many stacks are listed at most.
MAX_STACKS = 5000


def flame(answers: Answers, measure: StackMeasure, step: Callable[[float], None]) -> protocol.Flame:
    """Return the stacks of a part of a traceset. The longest stacks of a thread come first.

    Args:
        answers: Answers questions about the part.
        measure: Which times to add up.
        step: Called now and then with the progress, 0 to 1.
    """
    tables = answers.tables
    end = max(answers.traceset.end_ns() or 0, 1)
    so_far = lambda t: step(min(t / end, 1.0))  # noqa: E731
    sums = stack_sums(tables, measure, ("process", "tid"), step=so_far).to_pylist()
    processes = tables.table("processes", ["process", "pid"]).to_pylist()
    pids = {row["process"]: row["pid"] for row in processes}
    frames_of = Frames(tables)
    numbers: dict[Frame, int] = {}
    stacks: dict[tuple[int, ...], protocol.FlameStack] = {}
    for row in sums:
        frames = frames_of.of(row["stack_id"], row.get("doing")) or (UNKNOWN,)
        key = tuple(numbers.setdefault(frame, len(numbers)) for frame in frames)
        stack = stacks.setdefault(key, {"frames": list(key), "count": 0, "ns": 0, "threads": []})
        stack["count"] += row["count"]
        stack["ns"] += row["ns"]
        stack["threads"].append(
            {"row": 0, "pid": pids.get(row["process"], 0), "tid": row["tid"] or 0, "ns": row["ns"]}
        )
    return {
        "title": TITLES[measure],
        "frames": [
            {"name": frame.name, "text": frame.text, "module": frame.module} for frame in numbers
        ],
        "stacks": sorted(stacks.values(), key=lambda stack: -stack["ns"]),
        "count": sum(row["count"] for row in sums),
        "ns": sum(row["ns"] for row in sums),
    }


def with_threads(
    graph: protocol.Flame, row_of: Callable[[int, int], int], limit: int
) -> protocol.Flame:
    """Return a flame graph with the rows of its threads.

    Args:
        graph: The flame graph.
        row_of: Returns the row of a thread, given process and thread id; 0 if it has no row.
        limit: How many stacks to list.
    """
    return {
        **graph,
        "stacks": [
            {
                **stack,
                "threads": [
                    {**thread, "row": row_of(thread["pid"], thread["tid"])}
                    for thread in stack["threads"]
                ],
            }
            for stack in graph["stacks"][:limit]
        ],
    }
