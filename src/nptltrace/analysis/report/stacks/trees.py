"""Waits, holds or idle time by call stack, as a report has them: named stacks, and their trees."""

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
    """A stack and what happened at it.

    Attributes:
        frames: The frames from the call site on as text, the innermost first; never empty.
        count: How often.
        ns: How long.
    """

    frames: tuple[str, ...]
    count: int
    ns: int


@dataclass(frozen=True, slots=True)
class ReportStacks:
    """The stacks of a report.

    Attributes:
        measure: What is added up.
        stacks: The stacks, the longest first.
    """

    measure: StackMeasure
    stacks: list[StackFigures]


@dataclass(slots=True)
class Node:
    """A frame in a tree of stacks.

    Attributes:
        frame: The frame as text.
        count: How often something happened there or beneath.
        ns: How long.
        under: The frames beneath it, by their text; those with most time first.
    """

    frame: str
    count: int = 0
    ns: int = 0
    under: dict[str, Node] = field(default_factory=dict)


def stack_figures(
    traceset: Traceset, symbols: Symbols, scope: Scope, measure: StackMeasure
) -> ReportStacks:
    """Return what happened at each stack, the longest first.

    Args:
        traceset: The opened traces.
        symbols: Names addresses.
        scope: What to look at.
        measure: What to add up.
    """
    tables = TraceTables(traceset, symbols, scope)
    sums = stack_sums(tables, measure).to_pylist()
    stacks = Frames(tables)
    found: dict[tuple[str, ...], list[int]] = {}
    for row in sums:  # of stacks that differ only in what is passed over, one is made
        frames = tuple(stacks.texts(row["stack_id"])) or (UNKNOWN.text,)
        both = found.setdefault(frames, [0, 0])
        both[0] += row["count"]
        both[1] += row["ns"]
    order = sorted(found.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    return ReportStacks(measure, [StackFigures(frames, count, ns) for frames, (count, ns) in order])


def tree(stacks: Iterable[StackFigures], *, bottom_up: bool) -> Node:
    """Return stacks as a tree, whose root stands for all of them.

    Args:
        stacks: The stacks, the longest first.
        bottom_up: The call sites are at the top, and their callers beneath them; otherwise the
            outermost functions are, and what they call beneath them.
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
    _sort(root)
    return root


def _sort(root: Node) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        node.under = dict(sorted(node.under.items(), key=lambda item: -item[1].ns))
        waiting += node.under.values()
