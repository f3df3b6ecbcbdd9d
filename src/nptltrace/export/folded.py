"""Folded stacks: one line a stack, as flamegraph.pl and what came after it read; times in ns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.report.stacks.sums import shown_of
from nptltrace.export.writing.stacks import OPTIONS, samples, summary

if TYPE_CHECKING:
    from nptltrace.analysis.scope import Scope
    from nptltrace.export.writing.target import Target
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["OPTIONS", "write"]

# What ends a frame, or a line.
_REPLACED = str.maketrans({";": ":", "\n": " ", "\r": " "})


def write(
    traceset: Traceset,
    out: Target,
    *,
    symbols: Symbols | None = None,
    scope: Scope | None = None,
    show: str = "waits",
) -> str:
    """Write a line a stack: the functions from the outermost on, and nanoseconds.

    Args:
        traceset: The opened traces.
        out: A file.
        symbols: Names addresses.
        scope: What to write.
        show: What the times are of; see `stack_sums.SHOWN`.
    """
    shown = shown_of(show)
    found, _ = samples(traceset, symbols, scope, shown)
    lines: dict[str, int] = {}
    for sample in found:
        names = (frame.name.translate(_REPLACED) for frame in reversed(sample.frames))
        line = ";".join(names)
        lines[line] = lines.get(line, 0) + sample.ns
    with out.file() as file:
        file.writelines(f"{line} {ns}\n".encode() for line, ns in lines.items() if ns)
    return summary(found, shown)
