"""`ptt explore`: runs a program many times with random delays at synchronization."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from nptltrace.cli import steering
from nptltrace.cli.options import (
    add_format,
    duration_ns,
    program_words,
    say,
    write_json,
    write_lines,
)
from nptltrace.errors import UsageError

SUMMARY = "run a program many times with random delays, to find bugs that need bad luck"
DESCRIPTION = """\
Runs CMD again and again. Before threads take locks, signal, post or wait, PTT delays some of them
at random, so that they meet in unusual orders. It prints the findings of all runs, each with the
seeds of its runs. The same seed makes the same decisions again: for each thread, by the order in
which threads were created. PTT ends runs that hang, and keeps a trace of each error. The exit
status is 1 if anything was found, or if CMD failed in a run."""
EXAMPLE = """\
ptt explore -- ./program
ptt explore --runs 50 --time 60s -- ctest
ptt explore --runs 1 --seed 4711 -- ./program"""

_SEED_BITS = 31
# A total for each run, and the longest delay. Half of the seeds delay rarely.
_DELAY_NS, _TOTAL_NS = 20_000_000, 5_000_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options, and CMD with its arguments."""
    parser.usage = "%(prog)s [options] [--] CMD [ARG...]"
    add = parser.add_argument
    steering.add_runs(parser, "number of runs")
    add(
        "--time", metavar="TIME", type=duration_ns,
        help="begin no further run after this time (default: no limit)",
    )  # fmt: skip
    add(
        "--seed", metavar="S", type=int,
        help="seed of the first run; each further run has the next number (default: any)",
    )  # fmt: skip
    add(
        "--delay", metavar="TIME", type=duration_ns, default=_DELAY_NS,
        help="longest delay (default: 20ms)",
    )  # fmt: skip
    add(
        "--total", metavar="TIME", type=duration_ns, default=_TOTAL_NS,
        help="delays of all threads of a run together (default: 5s)",
    )  # fmt: skip
    add(
        "-o", "--output", metavar="DIR", type=Path, default=Path("ptt-explore"),
        help="keep the trace of the first run with an error there; a number is added if DIR exists "
        "(default: ptt-explore)",
    )  # fmt: skip
    add(
        "--kind", metavar="KIND,…", action="append", default=[],
        help="look only for these kinds of findings; see ptt check",
    )  # fmt: skip
    add(
        "--ignore", metavar="KIND[:TEXT]", action="append", default=[],
        help="ignore findings, as for ptt check",
    )  # fmt: skip
    add_format(parser, ("text", "json"))
    add("cmd", metavar="CMD", nargs=argparse.REMAINDER, help="the program, with its arguments")


def run(args: argparse.Namespace) -> int:
    """Explore, and print the findings."""
    command = program_words(args)
    if not command:
        raise UsageError("no program given (see ptt explore --help)")
    steering.check_positive(args, "runs", "time", "delay", "total", "time-limit")
    if args.delay > 60_000_000_000:  # noqa: PLR2004 -- a minute, the limit of the tracer
        raise UsageError("--delay is a minute at most")
    if args.seed is not None and not 0 <= args.seed < 1 << 63:
        raise UsageError("--seed is a number from 0 to 2^63 - 1")
    import random

    from nptltrace.analysis.finding_rules import Rules
    from nptltrace.cli.output.text import confirm_text
    from nptltrace.confirm.documents import explore_document
    from nptltrace.confirm.exploring import explore
    from nptltrace.confirm.plan import Delays

    begin_s = time.monotonic()
    rules = Rules.of(kinds=args.kind, ignored=args.ignore)
    command = steering.runnable(command)
    first = random.getrandbits(_SEED_BITS) if args.seed is None else args.seed
    say(args, f"seeds from {first}")
    found = explore(
        command, range(first, first + args.runs), Delays(args.delay, args.total),
        until_s=None if args.time is None else begin_s + args.time / 1e9,
        limit_s=args.time_limit / 1e9, kept=args.output, rules=rules,
        say=lambda text: say(args, text),
    )  # fmt: skip
    if args.format == "json":
        write_json(explore_document(found))
    else:
        last = found.seeds[-1] if found.seeds else first
        seeds = f"seeds {first} to {last}" if last != first else f"seed {first}"
        write_lines(confirm_text.explored(found, seeds))
    return int(bool(found.seen or found.failed or found.hung))
