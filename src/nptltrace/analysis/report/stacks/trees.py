"""Waits, holds or idle time by call stack in a report: stacks with names, and trees of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace.analysis.report.stacks.sums import stack_sums
from nptltrace.analysis.sql.tables import TraceTables
from nptltrace.analysis.stack_names import UNKNOWN, Frames

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.report.stacks.sums import StackMeasure
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Node", "ReportStacks", "StackFigures", "stack_figures", "tree"]


@dataclass(frozen=True, slots=True)
class StackFigures:
    """The waits, holds or idle waits at a stack.

    Attributes:
        frames: Frames from the call site on as text, the innermost first; never empty.
        count: Number of waits or holds.
        ns: Their total duration.
    """

    frames: tuple[str, ...]
    count: int
    ns: int


@dataclass(frozen=True, slots=True)
class ReportStacks:
    """The stacks of a report.

    Attributes:
        measure: The measure that is added up.
        stacks: The stacks, the longest first.
    """

    measure: StackMeasure
    stacks: list[StackFigures]


@dataclass(slots=True)
class Node:
    """A frame in a tree of stacks.

    Attributes:
        frame: The frame as text.
        count: Number of waits or holds at the frame and at the frames beneath it.
        ns: Their total duration.
        under: The frames beneath this frame, by their text, the longest time first.
    """

    frame: str
    count: int = 0
    ns: int = 0
    under: dict[str, Node] = field(default_factory=dict)


def stack_figures(
    traceset: Traceset, symbols: Symbols, scope: Scope, measure: StackMeasure
) -> ReportStacks:
    """Return the sums of each stack, the longest first.

    Args:
        traceset: The opened traces.
        symbols: Names addresses.
        scope: The part to look at.
        measure: The measure to add up.
    """
    tables = TraceTables(traceset, symbols, scope)
    rows = stack_sums(tables, measure).to_pylist()
    stacks = Frames(tables)
    sums: dict[tuple[str, ...], list[int]] = {}
    for row in rows:  # stacks that differ only in hidden frames become one stack
        frames = tuple(stacks.texts(row["stack_id"], row.get("doing"))) or (UNKNOWN.text,)
        both = sums.setdefault(frames, [0, 0])
        both[0] += row["count"]
        both[1] += row["ns"]
    order = sorted(sums.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    return ReportStacks(measure, [StackFigures(frames, count, ns) for frames, (count, ns) in order])


def tree(stacks: Iterable[StackFigures], *, bottom_up: bool) -> Node:
    """Return stacks as a tree. The root stands for all stacks.

    Args:
        stacks: The stacks, the longest first.
        bottom_up: Whether the call sites are at the top and their callers beneath them. Otherwise
            the outermost functions are at the top and their callees beneath them.
    """
    root = Node("")
    for stack in stacks:
        node = root
        frames = stack.frames if bottom_up else reversed(stack.frames)
        for frame in (None, *frames):
            if frame is not None:
                node = node.under.setdefault(frame, Node(frame))
            node.count += stack.count
            node.ns += stack.ns
    unsorted = [root]
    while unsorted:
        node = unsorted.pop()
        node.under = dict(sorted(node.under.items(), key=lambda item: -item[1].ns))
        unsorted += node.under.values()
    return root
