"""Warnings about options that match nothing in a trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nptltrace._units import duration, plural
from nptltrace.cli import traces
from nptltrace.cli.options import say
from nptltrace.trace.selection import like_names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["say_no_event", "say_no_object", "say_unmatched"]

_SHOWN = 5  # processes or threads of a trace
_PLACE = re.compile(r"(\+0x| \().*")  # what follows the name of a function in a call site


def say_unmatched(
    args: argparse.Namespace, source: Traceset, symbols: Symbols | None = None
) -> bool:
    """Warn on stderr about options that match nothing, and say what the trace has instead.

    Args:
        args: The parsed arguments.
        source: The opened traces.
        symbols: Names of addresses; None for commands without options for threads and call sites.

    Returns:
        Whether an option matches nothing.
    """
    span = source.reader.key_range()
    if span is None:  # another warning says that the trace is empty
        return True
    first, last = (source.reader.time_of_key(key) for key in span)
    last = max([last, *(ns for ns in source.ended_ns() if ns is not None)])
    warnings = list(_window(args, first, last))
    if symbols is not None:
        warnings += _threads(args, source)
        warnings += _sites(args, source, symbols)
    for text in warnings:
        say(args, f"warning: {text}")
    return bool(warnings)


def say_no_object(args: argparse.Namespace) -> None:
    """Warn on stderr that no object is left, if the options choose objects or call sites."""
    if args.object or args.site:
        options = _given(args, "pid", "tid", "object", "site")
        say(args, f"warning: no object matches {options} (ptt stat lists the objects)")


def say_no_event(args: argparse.Namespace, source: Traceset) -> None:
    """Warn on stderr that no event is left."""
    events = sum(source.reader.trace_info(trace.number).events for trace in source.traces)
    say(args, f"warning: no event matches: the trace has {events:,} {plural(events, 'event')}")


def _window(args: argparse.Namespace, first: int, last: int) -> Iterator[str]:
    begin, end = args.begin, args.end
    span = f"the trace has events from {duration(first)} to {duration(last)}"
    if begin is not None and begin == end:
        yield f"nothing lies between --from {duration(begin)} and --to {duration(end)}"
    elif begin is not None and begin > last:
        yield f"nothing comes after --from {duration(begin)}: {span}"
    elif end is not None and end <= first:
        yield f"nothing comes before --to {duration(end)}: {span}"


def _threads(args: argparse.Namespace, source: Traceset) -> Iterator[str]:
    if traces.selection(args).thread_numbers(source) != []:
        return
    pids = sorted({process.pid for process in source.processes})
    tids = sorted({tid for _, tid in source.thread_ids})
    what, numbers = (
        (plural(len(tids), "thread"), tids)
        if args.tid
        else (plural(len(pids), "process", "processes"), pids)
    )
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    yield f"no thread matches {_given(args, 'pid', 'tid')}: the trace has {what} {shown}{more}"


def _sites(args: argparse.Namespace, source: Traceset, symbols: Symbols) -> Iterator[str]:
    if traces.selection(args).site_pairs(source, symbols) == []:
        places = source.chosen.everywhere()
        names = {symbols.site_name(process, site) for process, site in places}
        functions = sorted({_PLACE.sub("", name) for name in names})
        others = f"{len(places):,} {plural(len(places), 'other')}"
        hint = like_names(args.site[0], functions)
        yield f"no call site matches {_given(args, 'site')}: the trace has {others}{hint}"


def _given(args: argparse.Namespace, *names: str) -> str:
    """Return options as the user wrote them."""
    return " ".join(f"--{name} {value}" for name in names for value in getattr(args, name, []))
