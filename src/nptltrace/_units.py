"""Dates, durations and sizes, each with the unit that fits, and nouns that go with a number."""

from __future__ import annotations

__all__ = ["date", "duration", "plural", "seconds", "size"]

_SIZES = ("B", "kB", "MB", "GB", "TB")


def date(unix_ns: int) -> str:
    """Return when something was, in local time."""
    from datetime import datetime

    try:
        return f"{datetime.fromtimestamp(unix_ns // 10**9).astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"


def seconds(ns: int) -> str:
    """Return a time as seconds with six decimals."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 10**9}.{abs(ns) % 10**9 // 1000:06} s"


def duration(ns: int) -> str:
    """Return a duration with three decimals and the unit that fits."""
    for unit, name in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if abs(ns) >= unit:
            return f"{ns / unit:.3f} {name}"
    return f"{ns} ns"


def size(n: int) -> str:
    """Return a number of bytes with the unit that fits."""
    value = float(n)
    for unit in _SIZES:
        if value < 1000 or unit == _SIZES[-1]:  # noqa: PLR2004 -- of the prefixes
            break
        value /= 1000
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"


def plural(count: int, noun: str, many: str = "") -> str:
    """Return a noun as it goes with a number.

    Args:
        count: The number.
        noun: For one.
        many: For other numbers, if it does not just end in an s more.
    """
    return noun if count == 1 else many or f"{noun}s"
