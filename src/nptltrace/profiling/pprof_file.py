"""A pprof file for each interval: `profile-BEGIN-RUN.pb.gz`."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from nptltrace._escaping import readable
from nptltrace.export.writing.pprof_profile import PprofProfile
from nptltrace.export.writing.target import Target
from nptltrace.profiling.labels import labels_of

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.profiling.interval import Interval

__all__ = ["file_name", "write"]

_TYPES = [("contentions", "count"), ("delay", "nanoseconds")]
# Intervals of many hosts begin in the same millisecond.
_RUN_DIGITS = 12


def file_name(interval: Interval, suffix: str) -> str:
    """Return the name of a file for an interval: no two recordings have the same names."""
    from datetime import UTC, datetime

    seconds, ns = divmod(interval.begin_ns, 10**9)
    begin = datetime.fromtimestamp(seconds, UTC)
    run = str(interval.run.get("run_id", "")).replace("-", "")[:_RUN_DIGITS]
    return f"profile-{begin:%Y%m%dT%H%M%S}.{ns // 10**6:03}Z-{run}{suffix}"


def write(interval: Interval, directory: Path) -> None:
    """Write the waits of an interval, of all classes.

    Raises:
        OSError: The file cannot be written.
        UsageError: There is a file of that name.
    """
    profile = PprofProfile(_TYPES, interval.modules)
    # Weights have fractions. What rounding leaves over goes to the next row, so sums stay right.
    count = ns = 0.0
    for row in interval.rows:
        count, ns = count + row.count, ns + row.total_ns
        whole = [floor(count + 0.5), floor(ns + 0.5)]
        count, ns = count - whole[0], ns - whole[1]
        profile.add(row.frames, whole, labels_of(row))
    comments = [
        f"program: {readable(str(interval.run.get('exe', '')))}",
        f"host: {readable(str(interval.run.get('host', '')))}",
        f"below the least wait: {interval.below[0]} waits of {interval.below[1]} ns",
        f"in the sample [other]: {interval.overflow[0]} waits of {interval.overflow[1]} ns",
        f"lost: {interval.lost} events",
    ]
    with Target(directory / file_name(interval, ".pb.gz")).file() as file:
        profile.write(
            file,
            begin_unix_ns=interval.begin_ns,
            duration_ns=interval.end_ns - interval.begin_ns,
            comments=comments,
        )
