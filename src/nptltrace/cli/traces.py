"""Options and warnings that the commands that read traces share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nptltrace.cli.options import duration_ns, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nptltrace._binding.libpttread import Filter
    from nptltrace.analysis.answers import Answers
    from nptltrace.trace.copying import Part
    from nptltrace.trace.objects.chosen import Chosen
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.trace.selection import Selection
    from nptltrace.trace.symbols.lookup import Processes, Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = [
    "Bound",
    "Warner",
    "add_filters",
    "add_names",
    "add_output",
    "add_rules",
    "add_traces_or_list",
    "add_window",
    "answers",
    "list_events",
    "load_rules",
    "names",
    "open_symbols",
    "part",
    "passed_over",
    "passing",
    "selection",
    "whole",
]


def whole(text: str) -> int:
    """Parse a whole number from 0 on; for `type=` of an option."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def add_traces_or_list(parser: argparse._ActionsContainer) -> None:
    """Add the TRACE arguments, and `--list-events`, which needs no trace."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="*", help="trace directories, read as one traceset"
    )
    parser.add_argument(
        "-l", "--list-events", action="store_true", help="list the event types there are, and stop"
    )


def add_filters(
    parser: argparse._ActionsContainer, *, events: bool = True, objects: bool = True
) -> None:
    """Add the options that choose events.

    Args:
        parser: The parser.
        events: Add options for event types.
        objects: Add options for objects and call sites.
    """
    left_out = set() if events else {"--event", "--suffix"}
    left_out |= set() if objects else {"--object", "--site"}
    group = parser.add_argument_group(
        "events", "separate alternatives with commas; if you repeat an option, all must match"
    )
    for option, metavar, what in (
        ("--pid", "PID,…", "events of these processes"),
        ("--tid", "TID,…", "events of these threads"),
        (
            "--object",
            "NAME|0x…[#N],…",
            "events on these objects: name, address, or Nth object at the address",
        ),
        ("--event", "PREFIX,…", "event names that begin with PREFIX"),
        ("--suffix", "SUFFIX,…", "event names that end with SUFFIX, such as _IN,_OUT"),
        (
            "--site",
            "TEXT|0x…,…",
            "events from these call sites: part of function, file or line, or address",
        ),
    ):
        if option not in left_out:
            group.add_argument(option, metavar=metavar, action="append", default=[], help=what)


class Bound(argparse.Action):
    """Stores the begin or the end of a part of a trace, and checks that the end is later.

    Attributes:
        parse: Parses a value: `type=` of the option.
        what: Help of the option for the end.
    """

    what = "end before this time"
    parse: Callable[[str], Any] = staticmethod(duration_ns)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store a value."""
        del option_string
        setattr(namespace, self.dest, values)
        begin, end = getattr(namespace, "begin", None), getattr(namespace, "end", None)
        if begin is not None and end is not None and begin > end:
            parser.error("the part begins (--from) after it ends (--to)")


def add_window(
    parser: argparse._ActionsContainer, *, counts: bool = True, end: type[Bound] = Bound
) -> None:
    """Add the options that choose a part of the trace.

    Args:
        parser: The parser.
        counts: Add options for a part by number of events.
        end: The action of `--to`.
    """
    group = parser.add_argument_group("part of the trace")
    group.add_argument(
        "--from", dest="begin", metavar="TIME", type=Bound.parse, action=Bound,
        help="begin at this time since the start of the trace: 1.5ms, 2s, or plain seconds",
    )  # fmt: skip
    group.add_argument(
        "--to", dest="end", metavar="TIME", type=end.parse, action=end, help=end.what
    )
    if not counts:
        return
    group.add_argument(
        "--start", metavar="N", type=whole, default=0, help="skip the first N events"
    )
    group.add_argument("--count", metavar="N", type=whole, help="take at most N events")


def add_output(parser: argparse._ActionsContainer, what: str, *, required: bool = False) -> None:
    """Add `--output` and `--force`."""
    parser.add_argument("-o", "--output", metavar="DIR", required=required, help=what)
    parser.add_argument(
        "--force", action="store_true", help="replace a trace that is already there"
    )


def add_names(parser: argparse._ActionsContainer) -> None:
    """Add the options for names of addresses."""
    parser.add_argument(
        "--alias", metavar="FILE", action="append", default=[],
        help="names of objects: lines `0xADDRESS name` or `symbol name`",
    )  # fmt: skip
    parser.add_argument(
        "--symbols", "--debug-dir", metavar="DIR", action="append", default=[],
        help="look for programs and debug files in DIR first, by build-id or name",
    )  # fmt: skip
    parser.add_argument(
        "--skip", metavar="PATTERN,…", action="append", default=[],
        help="skip these functions and modules when naming call sites, as in 'Lck_*,libSDL2*' "
        "(ptt config --skip remembers a list)",
    )  # fmt: skip


def add_rules(parser: argparse._ActionsContainer) -> None:
    """Add `--rules`, which adds kinds of findings."""
    parser.add_argument(
        "--rules", metavar="FILE", action="append", default=[],
        help="also look for the kinds of findings in this Python file; repeatable",
    )  # fmt: skip


def load_rules(args: argparse.Namespace) -> None:
    """Add the kinds of findings in the files of `--rules`.

    Raises:
        UsageError: A file cannot be read or run.
    """
    if args.rules:
        from nptltrace.findings.kind import load

        for path in args.rules:
            load(path)


def selection(args: argparse.Namespace) -> Selection:
    """Return the selection of the filter options."""
    from nptltrace.trace.selection import Selection

    return Selection(
        pids=args.pid,
        tids=args.tid,
        objects=getattr(args, "object", []),
        events=getattr(args, "event", []),
        suffixes=getattr(args, "suffix", []),
        sites=getattr(args, "site", []),
        scheduler=getattr(args, "scheduler", True),
        generation=_generation_at,
    )


def _generation_at(source: Traceset, address: int, number: int) -> list[Chosen]:
    from nptltrace.analysis.question_scope import generation_at  # only where an option asks for it

    return generation_at(source, address, number)


def passing(
    args: argparse.Namespace, source: Traceset, symbols: Symbols
) -> Callable[[Traceset], Filter] | None:
    """Return a function that creates a filter for the objects and call sites of the options.

    The filter also passes begins and ends of threads and processes.

    Returns:
        A function from a traceset to its filter; None if the options choose all events.

    Raises:
        UsageError: A name does not exist.
    """
    from dataclasses import replace

    from nptltrace.trace.filtered import always_kept

    chosen = replace(selection(args), pids=[], tids=[])
    if not chosen:
        return None
    chosen.build(source, symbols)  # raises an error for unknown names before anything is written

    def build(traces: Traceset) -> Filter:
        events = chosen.build(traces, symbols.of(traces))
        events.keep_events(always_kept())
        return events

    return build


def part(args: argparse.Namespace, source: Traceset, symbols: Symbols) -> Part:
    """Return the part of a trace that the options choose, without the choice of threads."""
    from nptltrace._binding import libpttread
    from nptltrace.trace.copying import Part

    begin, end = (
        None if ns is None else libpttread.Position(source.reader.key_of_time(ns), 0, 0, 0, 0)
        for ns in (args.begin, args.end)
    )
    chosen = passing(args, source, symbols)
    return Part(begin, end, passing=chosen, begin_ns=args.begin, end_ns=args.end)


def answers(args: argparse.Namespace, traceset: Traceset, symbols: Symbols) -> Answers:
    """Return the answers about the part of the traces that the options choose."""
    from nptltrace.analysis.answers import Answers

    return Answers(traceset, symbols, selection(args), (args.begin, args.end))


def names(traceset: Traceset) -> str:
    """Return the paths of the traces, as the user wrote them."""
    return ", ".join(str(path) for path in traceset.paths())


def open_symbols(args: argparse.Namespace, source: Processes, *, sites: bool = True) -> Symbols:
    """Return the names of addresses, with aliases and directories of the options.

    Args:
        args: The parsed arguments.
        source: The opened traces.
        sites: Choose call sites from stacks, which takes time.
    """
    from nptltrace.trace.symbols.alias import read_aliases
    from nptltrace.trace.symbols.lookup import Symbols

    aliases = read_aliases(args.alias)
    return Symbols(source, aliases, args.symbols, passed_over(args), sites=sites)


def passed_over(args: argparse.Namespace) -> PassedOver:
    """Return the frames that are not call sites, from the settings and the options.

    Raises:
        UsageError: A pattern is empty, or the settings cannot be read.
    """
    from nptltrace.cli.settings import Settings
    from nptltrace.trace.passed_over import PassedOver, patterns

    skipped = [pattern for option in args.skip for pattern in patterns(option)]
    return PassedOver([*Settings.read().skip, *skipped])


class Warner:
    """Prints warnings about a trace on stderr, each warning once.

    Args:
        args: The parsed arguments, with the verbosity.
        source: The opened traces.
    """

    SHOWN = 8

    def __init__(self, args: argparse.Namespace, source: Traceset) -> None:
        self._args = args
        self._source = source
        self._damages = 0
        self._said: set[str] = set()

    def say(self) -> None:
        """Print the new warnings."""
        from nptltrace.analysis import recording_state

        remarks = (
            recording_state.remarks(recording_state.killed(self._source)) + self._source.remarks()
        )
        for remark in remarks:
            if remark not in self._said:
                self._said.add(remark)
                say(self._args, f"warning: {remark}")
        damages = self._source.damages(self._damages)
        for number, damage in enumerate(damages, self._damages):
            if number < self.SHOWN or self._args.verbosity > 0:
                say(self._args, f"warning: {damage}")
        if self._damages <= self.SHOWN < self._damages + len(damages) and not self._args.verbosity:
            say(self._args, "warning: there is more damage (-v shows all of it)")
        self._damages += len(damages)


def list_events() -> None:
    """Print the event types: name, level and meaning."""
    from nptltrace.catalog import EVENTS

    seen: set[str] = set()
    for event in EVENTS:
        if event.name not in seen:
            seen.add(event.name)
            print(f"{event.name:<26} {event.level}  {event.text}")
