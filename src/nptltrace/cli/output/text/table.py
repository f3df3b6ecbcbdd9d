"""Parts of texts: tables of labels and numbers, and wrapped sentences."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from nptltrace._units import duration, plural
from nptltrace.cli.options import columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Table", "count_or_dash", "cut", "duration_or_dash", "many", "wrap"]


class Table:
    """Lays out a table: labels are left-aligned, values right-aligned.

    Args:
        title: Title of the labels.
        width: Width of the labels.
        heads: Titles and widths of the columns of values.
    """

    def __init__(self, title: str, width: int, heads: Mapping[str, int]) -> None:
        self._width, self._widths = width, tuple(heads.values())
        self.head = f"{title:<{width}}{self._cells(heads)}"

    def _cells(self, values: Iterable[str]) -> str:
        cells = zip(values, self._widths, strict=False)
        return "".join(f"{value:>{width}}" for value, width in cells)

    def row(self, label: str, *values: str) -> str:
        """Return a row as a line; a long label is cut."""
        return f"  {cut(label, self._width - 3):<{self._width - 2}}{self._cells(values)}"


def cut(text: str, width: int) -> str:
    """Return a text cut to a width, with `…` at its end if it was longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def duration_or_dash(ns: int) -> str:
    """Return a duration, or a dash for 0."""
    return duration(ns) if ns else "-"


def count_or_dash(count: int) -> str:
    """Return a count, or a dash for 0."""
    return f"{count:,}" if count else "-"


def many(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun, such as `1,234 waits`; see `plural`."""
    return f"{count:,} {plural(count, noun, nouns)}"


def wrap(text: str, indent: str, further: str | None = None) -> list[str]:
    """Return a sentence as lines of at most the width of the terminal.

    Args:
        text: The sentence.
        indent: The beginning of the first line.
        further: The beginning of the other lines; None: two columns more than `indent`.
    """
    return textwrap.wrap(
        text, columns(), initial_indent=indent,
        subsequent_indent=" " * (len(indent) + 2) if further is None else further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
