"""Folded stacks: one line for each stack, as flamegraph.pl reads them. Times are in ns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.export.writing.stacks import OPTIONS, summary

if TYPE_CHECKING:
    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]

# The characters that end a frame or a line.
_REPLACED = str.maketrans({";": ":", "\n": " ", "\r": " "})


def write(what: Export, out: Target) -> str:
    """Write a line for each stack: the functions, the outermost first, and nanoseconds."""
    lines: dict[str, int] = {}
    for sample in what.samples:
        names = (frame.name.translate(_REPLACED) for frame in reversed(sample.frames))
        line = ";".join(names)
        lines[line] = lines.get(line, 0) + sample.ns
    with out.file() as file:
        file.writelines(f"{line} {ns}\n".encode() for line, ns in lines.items() if ns)
    return summary(what.samples, what.shown)
