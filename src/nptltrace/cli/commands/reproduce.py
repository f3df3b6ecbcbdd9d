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

    if args.output.exists() and not args.force:
        raise UsageError(f"{args.output} exists (--force replaces it)")
    confirmer = steering.confirmer(args, kept=args.output.with_suffix(".ptt"))
    for number, candidate in steering.choose(args):
        result = confirmer.confirm(candidate, args.runs)
        if result.outcome != "confirmed" or result.delays is None:
            say(args, f"warning {number} is not confirmed: {result.outcome}, {result.runs} runs")
            continue
        say(args, f"warning {number} is confirmed: trace in {result.trace}")
        plan = Reproducer(result.candidate, result.roles, result.delays)
        (shrunk(confirmer, result) if args.shrink else plan).write(args.output)
        print(shlex.join(["ptt", "confirm", "--file", str(args.output), "--", *args.cmd]))
        return 0
    return 1
