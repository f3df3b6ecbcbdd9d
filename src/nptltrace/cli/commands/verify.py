"""`ptt verify`: checks the thread library against the promises of POSIX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.cli import traces
from nptltrace.cli.options import (
    add_format,
    add_traces,
    duration_ns,
    write_csv,
    write_json,
    write_lines,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from nptltrace.analysis.verify import Verdict, Violation

SUMMARY = "check that the thread library kept its promises"
DESCRIPTION = """\
Compares the trace with the promises of POSIX for a thread library: a mutex has one holder at a
time, a condition wait returns with the mutex, a signal wakes a thread, a barrier lets all
threads go and none before, a semaphore is never below zero, a once routine runs once, a join
returns after the end of the thread, and more. Each violation has the events that prove it. The
counts say how often PTT could check each rule, and why it could not elsewhere. For bugs of the
program itself, use `ptt check`. The exit status is 1 if a promise was broken."""
EXAMPLE = """\
ptt record -l 3 -o run.ptt -- ./program
ptt verify run.ptt
ptt verify --format json run.ptt | jq '.checked'"""

WIDTH = 80


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_traces(parser)
    add_format(parser)
    parser.add_argument(
        "--patience", metavar="TIME", type=duration_ns,
        help="report a thread as not woken only if it could have run for this time before its "
        "process ended (default: 10s)",
    )  # fmt: skip
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_names(parser)


def run(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from nptltrace.analysis.report.documents import verify_document, verify_rows
    from nptltrace.analysis.verify import PATIENCE_NS, verify
    from nptltrace.cli.unmatched import say_unmatched
    from nptltrace.trace.traceset import Traceset

    source = Traceset(*args.traces)
    warner = traces.Warner(args, source)
    symbols = traces.open_symbols(args, source)
    scope = traces.answers(args, source, symbols).scope
    verdict = verify(
        source,
        symbols,
        window=scope.window,
        patience_ns=PATIENCE_NS if args.patience is None else args.patience,
    )
    warner.say()
    say_unmatched(args, source, symbols)
    verdict = verdict.within(scope)
    if args.format == "text":
        name = traces.names(source)
        write_lines(_text(verdict, name))
    elif args.format == "json":
        write_json(verify_document(verdict))
    else:
        write_csv(verify_rows(verdict))
    return 1 if verdict.violations else 0


# ---- text ----


def _text(verdict: Verdict, name: str) -> Iterator[str]:
    """Yield the lines of the text."""
    violations = verdict.violations
    checks = sum(verdict.checked.values())
    if violations:
        errors = sum(violation.severity == "error" for violation in violations)
        warnings = len(violations) - errors
        yield (
            f"{name}: the thread library broke promises: {errors} {plural(errors, 'error')}, "
            f"{warnings} {plural(warnings, 'warning')}"
        )
    else:
        yield f"{name}: no broken promise of the thread library found in {checks:,} checks"
    for violation in violations:
        yield ""
        yield from _violation(violation)
    yield ""
    yield from _table("checks", verdict.checked)
    if verdict.skipped:
        yield ""
        yield from _table("not judged", verdict.skipped)
    if verdict.gaps:
        yield ""
        yield "Events may be missing; only what single calls show was judged:"
        yield from (f"  {gap}" for gap in verdict.gaps)


def _violation(violation: Violation) -> Iterator[str]:
    import textwrap

    times = f", {violation.count:,} times" if violation.count > 1 else ""
    yield f"{violation.severity}: {violation.rule} in process {violation.pid}{times}"
    yield from textwrap.wrap(violation.message, WIDTH, initial_indent="  ", subsequent_indent="  ")
    for event in violation.events:
        yield f"    {event.text}"


def _table(title: str, counts: dict[str, int]) -> Iterator[str]:
    yield f"{'':<28}{title:>12}"
    for name, number in counts.items():
        if number:
            yield f"  {name:<26}{number:>12,}"
