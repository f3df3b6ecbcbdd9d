"""`ptt diff`: what changed from one trace to another, or from some runs to others."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nptltrace.cli import gate, traces
from nptltrace.cli.options import add_format, say, write_csv, write_json, write_lines
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nptltrace.analysis.report.diff import Difference
    from nptltrace.analysis.report.measures import Run

SUMMARY = "say what changed between two traces, or between runs before and after"
DESCRIPTION = """\
Compares waits and holds by call site, object or thread. Call sites of builds that differ are the
same when their functions and lines are, so that a program compares with its next version. Where
both sides were run several times, differences that are chance are told from those that are not:
four runs of each are enough, two or three never are."""
EXAMPLE = """\
ptt diff before.ptt after.ptt
ptt diff old-1.ptt old-2.ptt old-3.ptt old-4.ptt --against new-*.ptt
ptt diff --per second --by object before.ptt after.ptt
ptt diff --fail-on 'wait>10%,hold>20%' main-*.ptt --against branch-*.ptt"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="+",
        help="the runs before; of just two traces the second is the run after",
    )  # fmt: skip
    parser.add_argument("--against", metavar="TRACE", nargs="+", help="the runs after")
    add_format(parser)
    parser.add_argument(
        "--by",
        choices=("site", "object", "thread"),
        default="site",
        help="what to compare (default: site)",
    )
    parser.add_argument(
        "--per", metavar="WHAT", default="run",
        help="divide by: second, or a type of event that stands for an operation, such as USER or "
        "SEM_POST (default: run, which divides by nothing)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", metavar="EXPR", type=gate.terms, action="extend", default=[],
        help="exit with status 1 if something changed by more: wait>10%%, hold>5ms, waits>100, "
        "holds<1%%; commas separate alternatives",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", metavar="PERCENT", type=_confidence, default=0.95,
        help="how sure a change must be (default: 95)",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="how many rows the text shows (default: 10, 0 = all)",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def _confidence(text: str) -> float:
    """Return a share from a percentage."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 50 <= percent < 100:  # noqa: PLR2004 -- less sure than a coin is not sure
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 50 to below 100")
    return percent / 100


def run(args: argparse.Namespace) -> int:
    """Print what changed."""
    from nptltrace.analysis.report.diff import compare

    before, after = (_runs(args, paths) for paths in _sides(args))
    _compare_levels(args, before, after)
    found = compare(before, after, confidence=args.confidence)
    failed = gate.failures(found, args.fail_on)
    _print(found, args)
    for term, row in failed:
        change = row.changes[term.metric.name]
        percent = "new" if change.percent is None else f"{change.percent:+.0f} %"
        say(args, f"failed on {term.text}: {row.label}: {percent}", verbosity=-1)
    return 1 if failed else 0


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the traces before and after.

    Raises:
        UsageError: Nobody says which are which.
    """
    if args.against:
        return args.traces, args.against
    if len(args.traces) != 2:  # noqa: PLR2004 -- before and after
        raise UsageError("which are after? ptt diff BEFORE AFTER, or BEFORE… --against AFTER…")
    return args.traces[:1], args.traces[1:]


def _runs(args: argparse.Namespace, paths: Iterable[str]) -> list[Run]:
    """Return what each trace says."""
    from nptltrace.analysis.report.measures import measure
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.source import Source

    runs = []
    for path in paths:
        source = Source([path])
        warner = traces.Warner(args, source)
        symbols = traces.open_symbols(args, source)
        scope = traces.scope(args, source, symbols)
        runs.append(measure(source, symbols, by=args.by, per=args.per, scope=scope))
        warner.say()
        say_unmatched(args, source, symbols)
    return runs


def _compare_levels(args: argparse.Namespace, before: list[Run], after: list[Run]) -> None:
    """Say when the runs were recorded in different detail, so that there is more of one side."""
    levels = [sorted({run.level for run in runs if run.level}) for runs in (before, after)]
    if levels[0] != levels[1] and all(levels):
        told = " and ".join(", ".join(side) for side in levels)
        say(
            args, f"warning: recorded at different levels ({told}): what is not in both has changed"
        )


def _print(found: Difference, args: argparse.Namespace) -> None:
    from nptltrace.analysis.report.documents import diff_document, diff_rows
    from nptltrace.cli.output.diff_text import lines

    if args.format == "text":
        write_lines(lines(found, by=args.by, per=args.per, top=args.top or None))
    elif args.format == "json":
        write_json(diff_document(found, by=args.by, per=args.per))
    else:
        write_csv(diff_rows(found, by=args.by))
