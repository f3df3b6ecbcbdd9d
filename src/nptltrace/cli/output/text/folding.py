"""Folds lines about events to a width; further lines are indented."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Folder", "folded"]

_INDENT = 16  # behind the time
_AT = "  at "


def folded(first: str, text: str, site: str, *, width: int, indent: int) -> list[str]:
    """Return a sentence and its call site as lines; a call site is not divided.

    Args:
        first: The beginning of the first line.
        text: The sentence.
        site: The call site, or an empty text.
        width: Greatest number of columns.
        indent: Indentation of further lines, in columns.
    """
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=" " * indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    if not site:
        return lines
    if lines and len(lines[-1]) + len(_AT) + len(site) <= width:
        return [*lines[:-1], f"{lines[-1]}{_AT}{site}"]
    return [*lines, f"{' ' * indent}at {site}"]


class Folder:
    """Folds the lines of `ptt view` to the width of a terminal.

    Args:
        write: Writes lines, as bytes.
        width: Number of columns.
    """

    def __init__(self, write: Callable[[bytes], object], width: int) -> None:
        self._write = write
        self._width = width

    def write(self, lines: memoryview) -> None:
        """Fold and write whole lines."""
        self._write(b"".join(map(self._folded, bytes(lines).splitlines(keepends=True))))

    def _folded(self, line: bytes) -> bytes:
        if len(line) <= self._width:
            return line
        text, _, site = line.decode(errors="surrogateescape").rstrip("\n").rpartition(_AT)
        if not text:
            text, site = site, ""
        # textwrap removes leading space, but the column of the time may be blank.
        start = len(text) - len(text.lstrip())
        lines = folded(text[:start], text[start:].rstrip(), site, width=self._width, indent=_INDENT)
        return ("\n".join(lines) + "\n").encode(errors="surrogateescape")
