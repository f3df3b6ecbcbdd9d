"""Plain CTF 1.8 from a compact trace: the trace as `ptt record` writes it without `--compact`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import size
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from nptltrace.export import Export
    from nptltrace.export.writing.target import Target

OPTIONS = ()


def write(what: Export, out: Target) -> str:
    """Write the trace directory again, with plain stream files.

    Returns:
        The size, as text.

    Raises:
        UsageError: There are several traces, or only a part is wanted, or the trace is not
            complete.
        TraceFormatError: A packet is damaged.
    """
    from nptltrace.analysis.question_scope import Scope
    from nptltrace.analysis.recording_state import refuse_unfinished
    from nptltrace.export.writing.recoding import place, recode

    source = what.traceset
    if len(source.traces) > 1:
        raise UsageError("ctf takes one trace: ptt merge makes one of several")
    if what.scope is not None and what.scope != Scope():
        raise UsageError("ctf takes a whole trace: ptt cut writes a part of a trace as plain CTF")
    refuse_unfinished(source)
    with place(out) as directory:
        _, after = recode(source.traces[0].path, directory, compact=False)
    return size(after)
