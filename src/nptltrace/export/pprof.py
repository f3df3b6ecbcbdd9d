"""pprof: a profile of contention, as Go's runtime writes it for `go tool pprof`.

A sample has the values `contentions` and `delay`, and the label `object`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.report.stacks.sums import TITLES
from nptltrace.export.writing.pprof_profile import PprofProfile
from nptltrace.export.writing.stacks import OPTIONS, modules, summary

if TYPE_CHECKING:
    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

__all__ = ["OPTIONS", "write"]


def write(what: Export, out: Target) -> str:
    """Write a profile, compressed by gzip."""
    samples, shown = what.samples, what.shown
    types = [("contentions", "count"), ("delay", "nanoseconds")]
    if shown == "holds":
        types = [("holds", "count"), ("held", "nanoseconds")]
    profile = PprofProfile(types, modules(what.trace_tables))
    for sample in samples:
        profile.add(sample.frames, [sample.count, sample.ns], {"object": sample.object})
    span = what.traceset.reader.key_range()
    first, last = map(what.traceset.reader.time_of_key, span) if span else (0, 0)
    with out.file() as file:
        profile.write(
            file,
            begin_unix_ns=max(what.traceset.start_unix_ns + first, 0),
            duration_ns=max(last - first, 0),
            comments=[TITLES[shown]],
        )
    return summary(samples, shown)
