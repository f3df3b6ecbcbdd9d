"""`ptt reproduce`: writes a file with which others see a deadlock."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli import steering
from nptltrace.cli.options import say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

SUMMARY = "write a file with which a colleague sees a deadlock, too"
DESCRIPTION = """\
Confirms a warning of TRACE as `ptt confirm` does, and writes FILE: where threads are held back, and
how long. It prints the command that makes the program deadlock again, on any host with the same
files. The exit status is 1 if no warning is confirmed; then there is no file."""
EXAMPLE = """\
ptt reproduce run.ptt -- ./program
ptt reproduce --shrink -o hang.json run.ptt -- ./program"""

PROGRAM = True

# The trace of the deadlock has the name of FILE with this suffix.
_TRACE = ".ptt"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, TRACE, and CMD with its arguments."""
    parser.usage = "%(prog)s [options] TRACE -- CMD [ARG...]"
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("repro.json"),
        help="file to write (default: repro.json)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace FILE")
    parser.add_argument(
        "--shrink", action="store_true",
        help="run CMD more often, to find the fewest and shortest delays that are enough",
    )  # fmt: skip
    steering.add_options(parser)
    steering.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Confirm a warning, write the file and print the command."""
    from nptltrace.confirm.reproducer import Reproducer, shrunk

    _check_output(args.output, force=args.force)
    confirmer = steering.confirmer(args, kept=args.output.with_suffix(_TRACE))
    for number, candidate in steering.choose(args):
        result = confirmer.confirm(candidate, args.runs)
        if result.delays is None:
            say(args, f"warning {number} is not confirmed: {result.outcome}, {result.runs} runs")
            continue
        say(args, f"warning {number} is confirmed: trace in {result.trace}")
        plan = Reproducer(result.candidate, result.held_back, result.delays)
        (shrunk(confirmer, plan) if args.shrink else plan).write(args.output)
        print(shlex.join(["ptt", "confirm", "--file", str(args.output), "--", *args.cmd]))
        return 0
    return 1


def _check_output(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, before the first run.

    Raises:
        UsageError: FILE is a directory, exists, or has the name of the trace.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory")
    if path.suffix == _TRACE:
        raise UsageError(f"{path}: choose another suffix; the trace of the deadlock has this name")
    if path.exists() and not force:
        raise UsageError(f"{path} exists (--force replaces it)")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}; make it first")
