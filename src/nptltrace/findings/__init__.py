"""The findings of `ptt check`, a module for each kind. You can add kinds of your own.

A kind of finding is a function that reads a trace's facts or tables and yields findings:

    from nptltrace.findings import Found, Trace, finding

    @finding("long-job", severity="warning")
    def long_job(trace: Trace) -> Iterator[Found]:
        \"\"\"A job kept its lock for more than a second.\"\"\"
        for hold in trace.sql("from named_holds where dur_ns > 1e9").to_pylist():
            yield Found("…", ts_ns=hold["t_ns"], process=hold["process"], threads=[hold["tid"]])

The decorator is enough. From then on, `ptt check` and its options, JSON and CSV, the viewer's panel
and the table `findings` of SQL have the kind. PTT's own kinds are the modules of the folders here.
`ptt check --rules FILE` and the entry points of the group `nptltrace.findings` add more kinds.
"""

from __future__ import annotations

from nptltrace.findings.facts import Event, Fact, Found, Step, Trace
from nptltrace.findings.kind import Kind, finding, kinds, load, load_installed

__all__ = [
    "Event",
    "Fact",
    "Found",
    "Kind",
    "Step",
    "Trace",
    "finding",
    "kinds",
    "load",
    "load_installed",
]
