"""`ptt diff`: the changes between two traces, or between baseline runs and new runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli import gate, traces
from nptltrace.cli.options import add_format, confidence, say, write_csv, write_json, write_lines
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from nptltrace.analysis.answers import Answers
    from nptltrace.analysis.report.diff import Difference

SUMMARY = "compare two traces, or the runs before and after a change"
DESCRIPTION = """\
Compares waits and holds by call site, call stack, object or thread. Call sites of different builds
match if their functions and lines match, so you can compare a program with its next version. Pass
several runs of each side to separate changes from chance. For 95 % confidence, record at least 4
and 4, 3 and 4, or 2 and 5 runs."""
EXAMPLE = """\
ptt diff before.ptt after.ptt
ptt diff old-1.ptt old-2.ptt old-3.ptt old-4.ptt --against new-*.ptt
ptt diff --per second --by object before.ptt after.ptt
ptt diff --fail-on 'wait>10%,hold>20%' main-*.ptt --against branch-*.ptt
ptt diff --fail-on 'wait>10%' --format junit before.ptt after.ptt > junit.xml"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="+",
        help="baseline traces; with exactly two traces, the second is the new run",
    )  # fmt: skip
    parser.add_argument("--against", metavar="TRACE", nargs="+", help="traces of the new runs")
    add_format(parser, ("text", "json", "csv", "junit"))
    parser.add_argument(
        "--by", choices=("site", "stack", "object", "thread"), default="site",
        help="what to compare (default: site)",
    )  # fmt: skip
    parser.add_argument(
        "--per", metavar="WHAT", default="run",
        help="divide by seconds (second) or by the number of events of a type that stands for an "
        "operation, such as USER or SEM_POST (default: run, no division)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", metavar="EXPR", type=gate.terms, action="extend", default=[],
        help="exit with status 1 if a change is larger: wait>10%%, hold>5ms, waits>100, holds<1%%; "
        "separate alternatives with commas",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", metavar="PERCENT", type=confidence, default=0.95,
        help="confidence that a change must reach (default: 95)",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--top", metavar="N", type=traces.whole, default=10,
        help="number of rows in the text (default: 10; 0: all)",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the changes."""
    from nptltrace.cli.output import junit

    if args.format == "junit" and not args.fail_on:
        raise UsageError("--format junit needs --fail-on")
    before, after = (_answers(args, paths) for paths in _sides(args))
    difference = next(before).diff(
        after, before=before, by=args.by, per=args.per, confidence=args.confidence
    )
    _compare_levels(args, difference)
    failed = gate.failures(difference, args.fail_on)
    if args.format == "junit":
        write_lines(junit.lines(difference, args.fail_on, failed))
    else:
        _print(difference, args)
    for term, row in failed:
        say(args, f"failed on {term.text}: {junit.sentence(term, row)}", verbosity=-1)
    return 1 if failed else 0


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the baseline traces and the new traces.

    Raises:
        UsageError: The arguments do not name the new runs.
    """
    if args.against:
        return args.traces, args.against
    if len(args.traces) != 2:  # noqa: PLR2004 -- before and after
        raise UsageError(
            "name the new runs: ptt diff BEFORE AFTER, or ptt diff BEFORE… --against AFTER…"
        )
    return args.traces[:1], args.traces[1:]


def _answers(args: argparse.Namespace, paths: Iterable[str]) -> Iterator[Answers]:
    """Open each trace, yield the answers about it, and print warnings about it."""
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    for path in paths:
        source = Traceset(path)
        warner = traces.Warner(args, source)
        symbols = traces.open_symbols(args, source)
        yield traces.answers(args, source, symbols)
        warner.say()
        say_unmatched(args, source, symbols)


def _compare_levels(args: argparse.Namespace, difference: Difference) -> None:
    """Warn if one side was recorded in more detail than the other."""
    sides = difference.before, difference.after
    levels = [sorted({run.level for run in runs if run.level}) for runs in sides]
    if levels[0] != levels[1] and all(levels):
        both = " and ".join(", ".join(side) for side in levels)
        say(
            args,
            f"warning: recorded at different levels ({both}): "
            "anything that only one side recorded counts as a change",
        )


def _print(difference: Difference, args: argparse.Namespace) -> None:
    from nptltrace.analysis.report.documents import diff_document, diff_rows
    from nptltrace.cli.output.text.diff_text import lines

    if args.format == "text":
        write_lines(lines(difference, by=args.by, per=args.per, top=args.top or None))
    elif args.format == "json":
        write_json(diff_document(difference, by=args.by, per=args.per))
    else:
        write_csv(diff_rows(difference, by=args.by))
