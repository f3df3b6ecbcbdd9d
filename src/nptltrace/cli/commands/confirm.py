"""`ptt confirm`: runs a program again, and shows whether a suspicion of a trace is real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli import steering
from nptltrace.cli.options import add_format, refuse_others, write_json, write_lines
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from nptltrace.confirm.confirming import Result
    from nptltrace.confirm.reproducer import Reproducer

SUMMARY = "run a program again, to see whether lock orders that can deadlock do deadlock"
DESCRIPTION = """\
`ptt check` warns of lock orders that can deadlock. This command takes these warnings from TRACE,
and runs CMD again for each. Where a thread asks for its second lock, PTT holds the thread back for
a moment, until its partner has taken the other lock. If the program then deadlocks, PTT ends the
program, keeps the trace of the run, and shows the deadlock. Otherwise PTT says how many runs have
not shown it, or which call site no run has reached. CMD is the program of the trace, or another
program with the same files: PTT compares build-ids. The exit status is 1 if a warning is
confirmed."""
EXAMPLE = """\
ptt confirm run.ptt -- ./program --its --options
ptt confirm --list run.ptt
ptt confirm --candidate 2 --runs 50 run.ptt -- ./program
ptt confirm --file repro.json -- ./program"""

PROGRAM = True


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, TRACE, and CMD with its arguments."""
    parser.usage = (
        "%(prog)s [options] TRACE -- CMD [ARG...]\n       %(prog)s [options] --list TRACE\n"
        "       %(prog)s [options] --file FILE -- CMD [ARG...]"
    )
    add = parser.add_argument
    add(
        "--list", action="store_true",
        help="only list the warnings with their numbers, and the lock orders that cannot "
        "deadlock with the reason",
    )  # fmt: skip
    steering.add_options(parser)
    add(
        "--file", metavar="FILE", type=Path,
        help="a file of ptt reproduce, in place of TRACE",
    )  # fmt: skip
    add(
        "-o", "--output", metavar="DIR", type=Path, default=Path("ptt-confirm"),
        help="keep the trace of a deadlock there; a number is added if DIR exists (default: "
        "ptt-confirm)",
    )  # fmt: skip
    add_format(parser, ("text", "json"))
    steering.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Confirm, and return 1 if anything is confirmed."""
    from nptltrace.confirm.documents import confirm_document
    from nptltrace.confirm.reproducer import read_reproducer

    plan: Reproducer | None = None
    if args.file is not None:
        if args.trace is not None or args.list or args.candidate is not None or args.kind:
            raise UsageError(
                "--file has one warning: TRACE, --list, --candidate and --kind do not fit"
            )
        plan = read_reproducer(args.file)
    elif args.list:
        return _list(args)
    confirmer = steering.confirmer(args, kept=args.output)
    results: dict[int, Result] = {}
    if plan is not None:
        results[1] = confirmer.confirm(
            plan.candidate, args.runs, delays=plan.delays, held_back=plan.held_back
        )
        _print(args, results[1], 1)
    else:
        chosen = steering.choose(args)
        numbers = {id(candidate): number for number, candidate in chosen}
        for result in confirmer.confirm_all([candidate for _, candidate in chosen], args.runs):
            number = numbers[id(result.candidate)]
            results[number] = result
            _print(args, result, number)
    if args.format == "json":
        write_json(confirm_document([results[number] for number in sorted(results)]))
    return int(any(result.outcome == "confirmed" for result in results.values()))


def _print(args: argparse.Namespace, result: Result, number: int) -> None:
    from nptltrace.cli.output.text import confirm_text

    if args.format == "text":
        write_lines(confirm_text.result(result, number))


def _list(args: argparse.Namespace) -> int:
    from nptltrace.cli.output.text import confirm_text

    if args.cmd:
        raise UsageError("--list runs no program")
    allowed = {"list", "trace", "kind", "format", "cmd"}
    refuse_others(args, configure, allowed, "does not fit --list, which only lists all warnings")
    if args.format != "text":
        raise UsageError("--list prints text; the table lock_cycles of ptt sql has all cycles")
    write_lines(confirm_text.listed(steering.warnings(args)))
    return 0
