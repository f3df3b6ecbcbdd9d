"""Words that several kinds of findings use."""

from __future__ import annotations

__all__ = ["duration", "priority"]


def duration(ns: int) -> str:
    """Return a time as text: `1.23 s`, `45.6 ms`, `789 ns`."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 100 * size else f"{ns // size} {unit}"
    return f"{ns} ns"


def priority(value: int) -> str:
    """Return a priority as text; 0 is an ordinary one."""
    return f"real-time priority {value}" if value else "ordinary priority"
