"""A pprof file for each interval: `profile-BEGIN-PID.pb.gz`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nptltrace._escaping import readable
from nptltrace.export.writing.pprof_profile import PprofProfile
from nptltrace.profiling.labels import labels_of

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.profiling.interval import Interval

__all__ = ["file_name", "write"]

_TYPES = [("contentions", "count"), ("delay", "nanoseconds")]


def file_name(interval: Interval, suffix: str) -> str:
    """Return the name of a file for an interval: no two recordings have the same names."""
    from datetime import UTC, datetime

    seconds, ns = divmod(interval.begin_ns, 10**9)
    begin = datetime.fromtimestamp(seconds, UTC)
    return f"profile-{begin:%Y%m%dT%H%M%S}.{ns // 10**6:03}Z-{os.getpid()}{suffix}"


def write(interval: Interval, directory: Path) -> None:
    """Write the waits of an interval, of all classes.

    Raises:
        OSError: The file cannot be written.
    """
    profile = PprofProfile(_TYPES, interval.modules)
    for row in interval.rows:
        profile.add(row.frames, [round(row.count), round(row.total_ns)], labels_of(row))
    comments = [
        f"program: {readable(str(interval.run.get('exe', '')))}",
        f"host: {readable(str(interval.run.get('host', '')))}",
        f"below the least wait: {interval.below[0]} waits of {interval.below[1]} ns",
        f"in the sample [other]: {interval.overflow[0]} waits of {interval.overflow[1]} ns",
        f"lost: {interval.lost} events",
    ]
    path = directory / file_name(interval, ".pb.gz")
    # No reader sees half of a file.
    hidden = path.with_name(f".{path.name}.new")
    with hidden.open("xb") as file:
        profile.write(
            file,
            begin_unix_ns=interval.begin_ns,
            duration_ns=interval.end_ns - interval.begin_ns,
            comments=comments,
        )
    hidden.rename(path)
