"""`ptt compact`: writes a trace in fewer bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.options import add_trace, say

if TYPE_CHECKING:
    import argparse

SUMMARY = "write a smaller copy of a trace"
DESCRIPTION = """\
Copies TRACE to a compact trace, which usually takes 2 to 5 bytes an event instead of 16. All
commands of PTT read compact traces. Other programs that read CTF do not: for them,
`ptt export --format ctf` writes the plain trace again, bit for bit. `ptt record --compact` records
a compact trace at once."""
EXAMPLE = """\
ptt compact -o small.ptt run.ptt
ptt export --format ctf -o plain.ptt small.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments."""
    add_trace(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="directory of the new trace"
    )
    parser.add_argument("--force", action="store_true", help="replace DIR if it exists")


def run(args: argparse.Namespace) -> int:
    """Write the compact trace."""
    from nptltrace._units import size
    from nptltrace.analysis.recording_state import refuse_unfinished
    from nptltrace.export.writing.recoding import place, recode
    from nptltrace.export.writing.target import Target
    from nptltrace.trace.traceset import Traceset

    refuse_unfinished(Traceset(args.trace))
    out = Target(args.output, force=args.force)
    with place(out) as directory:
        before, after = recode(Path(args.trace), directory, compact=True)
    say(args, f"wrote {size(after)} to {out} ({size(before)} before)")
    return 0
