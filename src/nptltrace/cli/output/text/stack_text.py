"""Stacks as text: a tree, with numbers that differ from the line above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import duration, plural
from nptltrace.analysis.report.stacks.sums import TITLES
from nptltrace.analysis.report.stacks.trees import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nptltrace.analysis.report.stacks.trees import Node, ReportStacks

__all__ = ["lines"]

_INDENT = 2
_DEEPEST = 40  # the greatest depth of indentation
_NUMBERS = "{:>12}{:>8}{:>10}  "


def lines(report: ReportStacks, *, name: str, bottom_up: bool, top: int | None) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        report: The stacks.
        name: The traces.
        bottom_up: Begin with the call sites, not with the outermost functions.
        top: Number of stacks; None for all.
    """
    stacks = report.stacks
    total, count = sum(stack.ns for stack in stacks), sum(stack.count for stack in stacks)
    yield name
    yield (
        f"  {TITLES[report.measure]}: {duration(total)} in {count:,}, at {len(stacks):,} call "
        f"{plural(len(stacks), 'stack')}"
    )
    if not stacks:
        return
    yield ""
    number = {"holds": "holds", "inside": "parts"}.get(report.measure, "waits")
    order = "call sites, and their callers" if bottom_up else "callers, and what they call"
    yield _NUMBERS.format("total", "share", number) + order
    yield from _under(tree(stacks[:top], bottom_up=bottom_up), 0, total)
    rest = stacks[top:] if top is not None else []
    if rest:
        ns = sum(stack.ns for stack in rest)
        yield _numbers(ns, sum(stack.count for stack in rest), total) + (
            f"{len(rest):,} more call {plural(len(rest), 'stack')} (-n 0 shows all)"
        )


def _under(node: Node, depth: int, total: int) -> Iterator[str]:
    for child in node.under.values():
        # A chain of calls without branches has its numbers once.
        same = (child.ns, child.count) == (node.ns, node.count)
        alone = depth > 0 and len(node.under) == 1 and same
        blank = " " * len(_NUMBERS.format("", "", ""))
        numbers = blank if alone else _numbers(child.ns, child.count, total)
        yield f"{numbers}{' ' * (_INDENT * min(depth, _DEEPEST))}{child.frame}"
        yield from _under(child, depth + 1, total)


def _numbers(ns: int, count: int, total: int) -> str:
    share = f"{100 * ns / total:.1f}%" if total else "-"
    return _NUMBERS.format(duration(ns), share, f"{count:,}")
