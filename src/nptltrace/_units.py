"""Dates, durations and sizes as text, and nouns in the number that a count needs."""

from __future__ import annotations

__all__ = ["date", "duration", "plural", "seconds", "size"]

_SIZES = ("B", "kB", "MB", "GB", "TB")


def date(unix_ns: int) -> str:
    """Return a Unix time in ns as local date and time, `2026-11-21 09:30:00`."""
    from datetime import datetime

    try:
        return f"{datetime.fromtimestamp(unix_ns // 10**9).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def seconds(ns: int) -> str:
    """Return a time in ns as seconds with six decimals, `1.234567 s`."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 10**9}.{abs(ns) % 10**9 // 1000:06} s"


def duration(ns: int) -> str:
    """Return a duration in ns with three decimals, in s, ms or us; below 1 us in ns."""
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if abs(ns) >= unit:
            return f"{ns / unit:.3f} {name}"
    return f"{ns} ns"


def size(n: int) -> str:
    """Return a number of bytes in B, kB, MB, GB or TB (powers of 1000)."""
    value = float(n)
    for unit in _SIZES:
        if value < 1000 or unit == _SIZES[-1]:  # noqa: PLR2004 -- of the prefixes
            break
        value /= 1000
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"


def plural(count: int, noun: str, many: str = "") -> str:
    """Return the singular or the plural of a noun.

    Args:
        count: The number of things.
        noun: The singular.
        many: The plural, if it is not the singular with an *s*.
    """
    return noun if count == 1 else many or f"{noun}s"
