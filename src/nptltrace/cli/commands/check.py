"""`ptt check`: finds bugs in a trace."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._escaping import talk
from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import (
    add_format,
    add_traces,
    duration_ns,
    say,
    suggest,
    write_csv,
    write_json,
    write_lines,
)
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Hashable, Iterator

    from nptltrace.analysis.finding_rules import Rules
    from nptltrace.analysis.findings import Finding, Findings
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

SUMMARY = "find deadlocks, lock orders that can deadlock, lost wake-ups, misuse"
DESCRIPTION = """\
Looks for bugs: deadlocks, lock orders that can deadlock, lost wake-ups, locks that are released by
the wrong thread, used after destroy, or never released, threads that nobody joins, and barriers
that nobody completes. Each finding is a sentence with all call sites, and the events that prove it.
The exit status is 1 if anything was found."""
EXAMPLE = """\
ptt check run.ptt
ptt check --kind deadlock,lock-order-inversion run.ptt
ptt check --ignore thread-leak --ignore lock-order-inversion:libfoo.so run.ptt
ptt check --follow run.ptt
ptt check --rules my_rules.py run.ptt
ptt check --format json run.ptt | jq '.findings[].message'
ptt check --format sarif --source-root ~/src/mine run.ptt > findings.sarif"""

_POLL_S = 0.2
# Kinds that read tables are evaluated after this time, and for at most 1/10 of the time.
_ADDED_S = 1.0
_ADDED_SHARE = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from nptltrace.findings.kind import kinds

    add_traces(parser)
    add_format(parser, ("text", "json", "csv", "sarif"))
    kind = parser.add_argument(
        "--kind", metavar="KIND,…", action="append", default=[], help="look only for these kinds"
    )
    suggest(kind, *kinds())
    parser.add_argument(
        "--ignore", metavar="KIND[:TEXT]", action="append", default=[],
        help="ignore findings of this kind (*: any) with TEXT in the name of an object or in a "
        "call site",
    )  # fmt: skip
    parser.add_argument(
        "--suppressions", metavar="FILE", action="append", default=[],
        help="ignore the findings in this file; each line is as for --ignore",
    )  # fmt: skip
    parser.add_argument(
        "--long-hold", metavar="TIME", type=duration_ns, default=1_000_000_000,
        help="report locks that are held for this time or longer (default: 1s)",
    )  # fmt: skip
    parser.add_argument(
        "--suspects", action="store_true",
        help="also report findings that may be false because memory was reused",
    )  # fmt: skip
    parser.add_argument(
        "--source-root", metavar="DIR", default=".",
        help="with sarif: name source files relative to this directory (default: .)",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--follow", action="store_true",
        help="check during the recording, and report a deadlock at once",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_rules(parser)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    from nptltrace.analysis.finding_rules import Rules
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    rules = Rules.of(
        kinds=args.kind, ignored=args.ignore, suppressions=args.suppressions,
        suspects=args.suspects, files=args.rules,
    )  # fmt: skip
    source = Traceset(*args.traces)
    warner = traces.Warner(args, source)
    warner.say()
    symbols = traces.open_symbols(args, source)
    if args.follow:
        return _follow(args, source, symbols, rules, warner)
    result, chosen = traces.answers(args, source, symbols).check(rules, args.long_hold)
    warner.say()
    say_unmatched(args, source, symbols)
    suspects = 0 if rules.suspects else sum(finding.suspect for finding in result.findings)
    if result.partial:
        are = plural(result.lost, "event is", "events are")
        what = f"{result.lost:,} {are} missing" if result.lost else "events are missing"
        say(args, f"warning: {what}: findings that need all events to be sure are left out")
    if suspects:
        are = plural(suspects, "finding is", "findings are")
        why = "memory that was used again may explain"
        say(args, f"{suspects} possible {are} left out, which {why} (--suspects shows them)")
    if result.crowded:
        what = "by threads that held more than 64 others"
        say(args, f"orders of locks that were taken {what} are not judged ({result.crowded:,})")
    for rule in rules.unmatched(result.findings):
        say(args, f"no finding matches {rule}")
    _print(args, source, symbols, result, chosen)
    _say_failures(result, set())
    return _status(result, chosen)


def _status(result: Findings, chosen: list[Finding]) -> int:
    """Return the exit status: failures of rules come before findings."""
    return UsageError.exit_status if result.failures else int(bool(chosen))


def _say_failures(result: Findings, reported: set[str]) -> None:
    """Report kinds of findings that failed, each once."""
    for failure in result.failures:
        if failure not in reported:
            talk(f"error: {failure}")
    reported.update(result.failures)


def _print(
    args: argparse.Namespace,
    source: Traceset,
    symbols: Symbols,
    result: Findings,
    chosen: list[Finding],
) -> None:
    from nptltrace.analysis.report.documents import findings_document, findings_rows
    from nptltrace.cli.output.text import check_text

    if args.format == "text":
        # Errors first: the reason of a hang must not stand behind warnings.
        for finding in sorted(chosen, key=lambda finding: finding.severity != "error"):
            write_lines(check_text.finding(finding, stacks=args.verbosity > 0))
        write_lines(check_text.summary(chosen, traces.names(source), _unseen(result)))
    elif args.format == "json":
        write_json(findings_document(chosen, result.uncovered, result.futex_waits))
    elif args.format == "sarif":
        from nptltrace.cli.output import sarif

        write_json(sarif.sarif_document(chosen, symbols.named(), Path(args.source_root)))
        # The document is for a service: whoever reads the log of the run sees what was found.
        say(args, next(check_text.summary(chosen, traces.names(source), _unseen(result))))
    else:
        write_csv(findings_rows(chosen))


def _unseen(result: Findings) -> list[str]:
    """Return sentences about parts of the program that findings do not cover."""
    from nptltrace.cli.output.text import not_covered

    return [
        *not_covered.futexes(result.futex_waits),
        *not_covered.modules(result.uncovered),
        *not_covered.silent(result.silent),
        *not_covered.left_alone(result.left_alone),
    ]


def _follow(
    args: argparse.Namespace,
    source: Traceset,
    symbols: Symbols,
    rules: Rules,
    warner: traces.Warner,
) -> int:
    """Print findings when they appear, until the recording ends."""
    from nptltrace.analysis.checking.checker import Checker
    from nptltrace.analysis.findings import findings_of
    from nptltrace.analysis.recording_state import is_recorded
    from nptltrace.cli.output.text import check_text
    from nptltrace.trace.reading.watermark import Settled

    checker = Checker(source, args.long_hold)
    settled = Settled(source)
    shown: set[Hashable] = set()
    reported: set[str] = set()
    chosen: list[Finding] = []
    known, again_s = 0, 0.0
    running = is_recorded(source)
    while True:
        checker.read(settled.until_ns() if running else None)
        if not running:
            checker.finish()
        # Kinds that read tables may read the whole trace each time.
        tables = not running or (rules.added and time.monotonic() >= again_s)
        if tables or checker.found != known:
            known, begin_s = checker.found, time.monotonic()
            source.names.learn()
            result = findings_of(source, symbols, checker, wanted=rules.kinds, tables=tables)
            answers = traces.answers(args, source, symbols)
            chosen = answers.within(rules.chosen(result.findings))
            _say_failures(result, reported)
            if tables:
                end_s = time.monotonic()
                again_s = end_s + max(_ADDED_S, _ADDED_SHARE * (end_s - begin_s))
        for key, finding in _distinguished(chosen) if args.format == "text" else ():
            if key not in shown:
                write_lines(check_text.finding(finding, stacks=args.verbosity > 0))
                sys.stdout.flush()
            shown.add(key)
        warner.say()
        if not running:
            break
        time.sleep(_POLL_S)
        # Before the refresh, so that events up to the end of the recording are read.
        running = is_recorded(source)
        checker.refresh()
        running = running and source.running
    if args.format != "text":
        _print(args, source, symbols, result, chosen)
    else:
        write_lines(check_text.summary(chosen, traces.names(source), _unseen(result)))
    return _status(result, chosen)


def _distinguished(findings: list[Finding]) -> Iterator[tuple[Hashable, Finding]]:
    """Yield findings, each with a key that identifies it in every evaluation."""
    from nptltrace.findings.kind import kinds

    seen: dict[Hashable, int] = {}
    for finding in findings:
        if not kinds()[finding.kind].tables:
            yield (finding.kind, finding.ts_ns, tuple(finding.threads)), finding
            continue
        # Times of tables change a little when the frequency of the clock is known exactly.
        key = (finding.kind, tuple(finding.threads), tuple(finding.sites))
        seen[key] = seen.get(key, 0) + 1
        yield (key, seen[key]), finding
