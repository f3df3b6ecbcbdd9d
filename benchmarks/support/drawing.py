"""Draws bars as SVG: a bar per row, with a line from the least to the greatest figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, FIGURE = 720, 230, 70
ROW, HEAD = 20, 34
# Colours for both the light and the dark theme of the pages.
OURS, THEIRS, PLAIN, LINE = "#2f8f6b", "#b0713a", "#7a7f87", "#c23b3b"


@dataclass(frozen=True, slots=True)
class Row:
    """A bar.

    Attributes:
        name: The text before the bar.
        value: The length of the bar.
        least: The begin of the line.
        greatest: The end of the line.
    """

    name: str
    value: float
    least: float
    greatest: float


def colour(name: str) -> str:
    """Return the class of colour of a bar by its name."""
    if "PTT" in name or name.startswith(("ptt", "count", "columns")):
        return OURS
    return PLAIN if name in {"untraced", "floor"} else THEIRS


def draw(title: str, rows: Sequence[Row], *, unit: str, log: bool) -> str:
    """Return the picture.

    Args:
        title: The text above the picture.
        rows: The bars, from top to bottom.
        unit: The unit of the figures.
        log: Whether the scale is logarithmic. It begins below the least figure.
    """
    low = min(row.least for row in rows) / 2 if log else 0.0
    high = max(row.greatest for row in rows)
    room = WIDTH - LABEL - FIGURE

    def x(value: float) -> float:
        if log:
            return room * math.log(max(value, low) / low) / math.log(high / low)
        return room * max(value, 0.0) / high

    lines = [f"<title>{escape(title)}</title>", _text(0, 16, title, 'font-weight="bold"')]
    for number, row in enumerate(rows):
        top = HEAD + ROW * number
        middle = top + ROW / 2
        left, right = LABEL + x(row.least), LABEL + x(row.greatest)
        figure = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.3g}"
        at = f'x="{LABEL}" y="{top + 3}" width="{max(x(row.value), 1):.1f}" height="{ROW - 6}"'
        way = f"M{left:.1f} {middle:.1f}H{right:.1f}"
        lines += [
            _text(LABEL - 8, middle + 4, row.name, 'text-anchor="end"'),
            f'<rect {at} fill="{colour(row.name)}"/>',
            f'<path d="{way}" stroke="{LINE}" stroke-width="2"/>',
            _text(right + 6, middle + 4, f"{figure} {unit}"),
        ]
    height = HEAD + ROW * len(rows) + 6
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    font = f'font-family="sans-serif" font-size="12" fill="{PLAIN}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">'
    return "\n".join([head, *lines, "</svg>", ""])


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'
