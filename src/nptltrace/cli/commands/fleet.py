"""`ptt fleet`: keeps many runs in a store, and compares them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.imports import import_whole
from nptltrace.cli.options import (
    add_engine,
    add_format,
    chosen_engine,
    confidence,
    duration_ns,
    say,
    say_error,
    write_csv,
    write_json,
    write_lines,
)
from nptltrace.errors import PttError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from nptltrace.fleet.fleet import Fleet
    from nptltrace.fleet.selection import Chosen

SUMMARY = "keep many runs in a store, and compare them"
DESCRIPTION = """\
A store is a directory, or a place in a bucket, with the tables of many runs.

  add      add the runs of traces, and make the store if it does not exist
  list     show the runs
  remove   remove the runs with the given ids
  compact  join many small files into few
  report   show where runs waited, and which runs waited longer
  check    show the findings, and locks taken in different orders
  diff     compare the runs of --only with the runs of --against

A run that is in the store is not added again. With --slices, several processes or Spark workers add
one large trace. `ptt sql --store` queries a store. The exit status of `check` is 1 if anything was
found."""
EXAMPLE = """\
ptt fleet add ~/runs run.ptt --label release=1.4.2 --label canary=yes
ptt fleet add ~/runs large.ptt --slices 16
ptt fleet report ~/runs --by release
ptt fleet check ~/runs --only host=web1
ptt fleet diff ~/runs --only release=1.4.1 --against release=1.4.2
ptt fleet remove ~/runs --only release=1.3.0
ptt sql --store ~/runs 'select * from contention_by_site limit 5'"""

INTERMIXED = True

_ACTIONS = ("add", "list", "remove", "compact", "report", "check", "diff")
# The actions of each option; the other options are for all actions.
_FOR = {
    "label": ("add", "list", "remove", "report", "check", "diff"),
    "summary": ("add",),
    "only": ("list", "remove", "report", "check", "diff"),
    "against": ("diff",),
    "by": ("report", "check"),
    "top": ("report", "diff", "check", "list"),
    "confidence": ("report", "diff"),
    **dict.fromkeys(("engine", "master", "remote"), ("add", "report", "check", "diff")),
    **dict.fromkeys(("slices", "scratch"), ("add",)),
}
_LONG_NS = 1_000_000
_TOP = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action and the options."""
    parser.add_argument("action", metavar="ACTION", choices=_ACTIONS, help=", ".join(_ACTIONS))
    parser.add_argument("store", metavar="STORE", help="directory, or address of a bucket")
    parser.add_argument(
        "items", metavar="ITEM", nargs="*", help="traces to add, or ids of runs to remove"
    )
    add_format(parser)
    parser.add_argument(
        "--label", metavar="NAME=VALUE", action="append",
        help="add: label of the runs for comparisons; other actions: as --only; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--summary", metavar="TIME", type=duration_ns, nargs="?", const=_LONG_NS,
        help="add sums, and the waits of this length or longer (default: 1ms)",
    )  # fmt: skip
    parser.add_argument(
        "--slices", metavar="N", type=traces.whole,
        help="add a large trace in N slices of time, with several processes or Spark",
    )  # fmt: skip
    parser.add_argument(
        "--scratch", metavar="DIR",
        help="directory for temporary slice state, shared with the Spark workers",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="NAME=VALUE", action="append",
        help="use only runs with this host, exe, run_id or label; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="NAME=VALUE", action="append",
        help="diff: the other runs; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--by", metavar="NAME", help="compare runs by host, exe or a label (default: release)"
    )
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, help="number of rows (default: 10; 0: all)"
    )
    parser.add_argument(
        "--confidence", metavar="PERCENT", type=confidence,
        help="confidence that a change must reach (default: 95)",
    )  # fmt: skip
    add_engine(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    if args.engine == "spark":
        import_whole("pyarrow")
    for option, actions in _FOR.items():
        if getattr(args, option) is not None and args.action not in actions:
            raise UsageError(f"--{option} is for ptt fleet {' and '.join(actions)}")
    if args.items and args.action not in {"add", "remove"}:
        raise UsageError(f"ptt fleet {args.action} takes a store and nothing else")
    if args.action == "add":
        return _add(args)
    args.only = [*(args.only or ()), *(args.label or ())]
    from nptltrace.fleet import open as open_fleet

    with open_fleet(args.store, **chosen_engine(args)) as fleet:
        if args.action == "compact":
            fleet.store.compact()
            return 0
        return {
            "list": _list, "remove": _remove, "report": _report, "check": _check, "diff": _diff,
        }[args.action](args, fleet)  # fmt: skip


def _add(args: argparse.Namespace) -> int:
    from nptltrace.fleet.labels import parse_label
    from nptltrace.fleet.store import Store

    if not args.items:
        raise UsageError("name the traces to add")
    labels = dict(parse_label(text) for text in args.label or ())
    add = _adder(args)
    store = Store(args.store, create=True)
    added = refused = 0
    for path in args.items:
        try:
            is_new = add(store, Path(path), labels, least_ns=args.summary)
        except (PttError, OSError) as error:
            if len(args.items) == 1:
                raise
            say_error(error)  # the other traces are still added
            refused += 1
            continue
        added += is_new
        if not is_new:
            say(args, f"{path}: its run is in {store.place} already")
    say(args, f"added {added} {plural(added, 'run')} to {store.place}")
    return UsageError.exit_status if refused else 0


def _adder(args: argparse.Namespace) -> Callable[..., bool]:
    """Return the function that adds a run: in one piece, or in slices."""
    if args.slices is None:
        for option in ("engine", "master", "remote", "scratch"):
            if getattr(args, option) is not None:
                raise UsageError(f"--{option} of ptt fleet add is for --slices")
        from nptltrace.fleet.adding import add_run

        return add_run
    if args.slices == 0:
        raise UsageError("--slices takes 1 or more")
    from nptltrace.fleet.engines import spark_session
    from nptltrace.fleet.sliced import add_sliced

    scratch = None if args.scratch is None else Path(args.scratch)
    spark = spark_session(**chosen_engine(args))
    return partial(add_sliced, slices=args.slices, spark=spark, scratch=scratch)


def _chosen(args: argparse.Namespace, fleet: Fleet) -> Chosen:
    from nptltrace.fleet.selection import choose

    return choose(fleet.runs, args.only)


def _list(args: argparse.Namespace, fleet: Fleet) -> int:
    from nptltrace.cli.output.text import fleet_text
    from nptltrace.fleet.selection import fleet_runs

    document = fleet_runs(fleet, _chosen(args, fleet))
    rows, lines = fleet_text.run_rows(document), fleet_text.runs(document, _top(args, 0))
    _print(args, document, rows, lines)
    return 0


def _remove(args: argparse.Namespace, fleet: Fleet) -> int:
    if not args.items and not args.only:
        raise UsageError("name the runs to remove by their ids, or with --only")
    chosen = _chosen(args, fleet).run_ids
    unknown = sorted(set(args.items) - set(chosen))
    if unknown:
        raise UsageError(f"{fleet.store.place} has no run {unknown[0]} (see ptt fleet list)")
    removed = args.items or chosen
    if removed:
        fleet.store.remove(removed)
    say(args, f"removed {len(removed)} {plural(len(removed), 'run')} from {fleet.store.place}")
    return 0


def _report(args: argparse.Namespace, fleet: Fleet) -> int:
    from nptltrace.cli.output.text import fleet_text
    from nptltrace.fleet.report import fleet_report

    chosen = _chosen(args, fleet)
    by = args.by or ("release" if "release" in chosen.names else "host")
    document = fleet_report(fleet, chosen, by=by, confidence=args.confidence or 0.95)
    rows, lines = fleet_text.report_rows(document), fleet_text.report(document, _top(args, _TOP))
    _print(args, document, rows, lines)
    return 0


def _check(args: argparse.Namespace, fleet: Fleet) -> int:
    from nptltrace.cli.output.text import fleet_text
    from nptltrace.fleet.check import fleet_check

    document = fleet_check(fleet, _chosen(args, fleet), by=args.by)
    rows, lines = fleet_text.check_rows(document), fleet_text.check(document, _top(args, 0))
    _print(args, document, rows, lines)
    return 1 if document["findings"] else 0


def _diff(args: argparse.Namespace, fleet: Fleet) -> int:
    from nptltrace.cli.output.text import fleet_text
    from nptltrace.fleet.report import fleet_diff
    from nptltrace.fleet.selection import choose

    if not args.only or not args.against:
        raise UsageError("choose the runs with --only, and those to compare with --against")
    before, after = (choose(fleet.runs, wanted) for wanted in (args.only, args.against))
    document = fleet_diff(fleet, before, after, confidence=args.confidence or 0.95)
    rows, lines = fleet_text.diff_rows(document), fleet_text.diff(document, _top(args, _TOP))
    _print(args, document, rows, lines)
    return 0


def _print(
    args: argparse.Namespace,
    document: Mapping[str, Any],
    rows: Iterable[Sequence[Any]],
    lines: Iterable[str],
) -> None:
    """Print a document as JSON, its rows as CSV, or its lines as text."""
    if args.format == "json":
        write_json(document)
    elif args.format == "csv":
        write_csv(rows)
    else:
        write_lines(lines)


def _top(args: argparse.Namespace, default: int) -> int | None:
    """Return the number of rows to show; None for all."""
    return (default if args.top is None else args.top) or None
