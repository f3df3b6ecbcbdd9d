"""What commands share that confirm the warnings of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli.options import duration_ns, say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from nptltrace.confirm.candidates import Candidate
    from nptltrace.confirm.confirming import Confirmer

__all__ = [
    "add_arguments", "add_options", "add_runs", "check_positive", "choose", "confirmer", "runnable",
    "warnings",
]  # fmt: skip

_LIMIT_NS = 60_000_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that confirm warnings."""
    add = parser.add_argument
    add(
        "--candidate", metavar="N", type=int,
        help="only the warning with this number of --list with the same --kind (default: all)",
    )  # fmt: skip
    add(
        "--kind", choices=("lock-order-inversion", "wait-holding-lock", "lost-wakeup"),
        help="only warnings of this kind. wait-holding-lock: a thread waits with a lock that the "
        "thread needs that ends the wait. lost-wakeup: each condition wait and its signal, and PTT "
        "tries what happens if the signal comes first (default: all but lost-wakeup)",
    )  # fmt: skip
    add_runs(parser, "run CMD up to N times for each warning")


def add_runs(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add `--runs` and `--time-limit`.

    Args:
        parser: The parser.
        meaning: What `--runs` means, for its help.
    """
    add = parser.add_argument
    add("--runs", metavar="N", type=int, default=20, help=f"{meaning} (default: 20)")
    add(
        "--time-limit", metavar="TIME", type=duration_ns, default=_LIMIT_NS,
        help="end a run after this time (default: 60s)",
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments TRACE and CMD, which stands behind `--`."""
    parser.add_argument("trace", metavar="TRACE", nargs="?", help="a trace directory")
    parser.add_argument("cmd", metavar="-- CMD", nargs="*", help="the program, with its arguments")


def check_positive(args: argparse.Namespace, *names: str) -> None:
    """Refuse numbers and times that are 0 or less.

    Args:
        args: The parsed arguments.
        names: The long names of the options.

    Raises:
        UsageError: A number is too small.
    """
    for name in names:
        value = getattr(args, name.replace("-", "_"))
        if value is not None and value <= 0:
            raise UsageError(f"--{name} must be greater than 0")


def confirmer(args: argparse.Namespace, *, kept: Path) -> Confirmer:
    """Return what runs the program.

    Args:
        args: The parsed arguments.
        kept: Where the trace of a deadlock goes.

    Raises:
        UsageError: There is no program, or a number is too small.
        CannotRun: The program does not exist, or cannot be executed.
    """
    from nptltrace.confirm.confirming import Confirmer

    if not args.cmd:
        raise UsageError("no program given: write -- CMD behind the options")
    check_positive(args, "runs", "time-limit")
    return Confirmer(
        runnable(args.cmd),
        limit_s=args.time_limit / 1e9,
        kept=kept,
        say=lambda text: say(args, text),
    )


def choose(args: argparse.Namespace) -> list[tuple[int, Candidate]]:
    """Return the warnings to confirm, with their numbers.

    Raises:
        UsageError: There is no warning with the number.
    """
    possible = [each for each in warnings(args) if not each.impossible]
    numbered = list(enumerate(possible, 1))
    if args.candidate is None:
        if not numbered:
            kind = f" of kind {args.kind}" if args.kind else ""
            say(args, f"{args.trace}: there are no warnings{kind}")
        return numbered
    if not 1 <= args.candidate <= len(possible):
        count = f"has {len(possible)}" if possible else "has none"
        raise UsageError(f"there is no warning {args.candidate}: {args.trace} {count} (see --list)")
    return [numbered[args.candidate - 1]]


def warnings(args: argparse.Namespace) -> list[Candidate]:
    """Return all warnings of a trace, with those that cannot happen at the end."""
    from nptltrace.cli import traces
    from nptltrace.confirm.candidates import KINDS, candidates
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

    if args.trace is None:
        raise UsageError("no trace given (see --help)")
    source = Traceset(args.trace)
    traces.Warner(args, source).say()
    kinds = [args.kind] if args.kind else [kind for kind in KINDS if kind != "lost-wakeup"]
    return candidates(
        source, Symbols(source, sites=False), kinds, lambda text: say(args, f"{args.trace}: {text}")
    )


def runnable(command: Sequence[str]) -> list[str]:
    """Return a command, with Python in front of a script without an interpreter.

    Raises:
        UsageError: The program cannot be traced.
        CannotRun: The program does not exist, or cannot be executed.
    """
    from nptltrace.recording import launch

    command = list(launch.with_interpreter(command))
    program = launch.find_program(command[0])
    if why := launch.why_untraceable(program):
        raise UsageError(f"{program} cannot be traced: {why}")
    return command
