"""`ptt bundle`: adds names to a trace, so that other machines can read it without symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import add_traces, say

if TYPE_CHECKING:
    import argparse

SUMMARY = "add the names of functions, lines and variables to a trace"
DESCRIPTION = """\
Looks up every call site, function and variable of the trace, and keeps the names in the trace
(info/symbols.jsonl). Run it on the machine that has the programs and their debug files. After
that, other machines need no symbols to read the trace."""
EXAMPLE = """\
ptt bundle run.ptt && tar -czf run.tar.gz run.ptt
ptt bundle --symbols build/debug run.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Write the names."""
    from nptltrace.trace.bundling.bundle_writer import write_bundle
    from nptltrace.trace.traceset import Traceset

    source = Traceset(*args.traces)
    warner = traces.Warner(args, source)
    bundles = write_bundle(source, traces.open_symbols(args, source))
    warner.say()
    for trace, bundle in zip(source.traces, bundles, strict=True):
        for module, count in sorted(bundle.nameless.items()):
            say(args, f"{module}: no symbols for {count} of its addresses")
        what = f"{bundle.names} names, {bundle.lines} with a source line"
        say(args, f"put {what}, into {trace.path} ({bundle.size / 1000:.1f} kB)")
    return 0
