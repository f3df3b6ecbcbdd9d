"""Options that several commands share, the parsers of their values, and output."""

from __future__ import annotations

import argparse
import re
import sys

from nptltrace._escaping import for_terminal, talk
from nptltrace.errors import UsageError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

__all__ = [
    "add_buffer_budget",
    "add_engine",
    "add_format",
    "add_level",
    "add_show",
    "add_stacks",
    "add_trace",
    "add_traces",
    "chosen_engine",
    "columns",
    "confidence",
    "duration_ns",
    "program_words",
    "refuse_others",
    "say",
    "say_error",
    "size",
    "suggest",
    "write_csv",
    "write_json",
    "write_lines",
]

_LEVELS = ("0", "1", "2", "3", "4", "LEVEL_NONE", "LEVEL_IO", "LEVEL_ALL")

# As texts: they are compiled only if there is something to match, because that takes time.
_SIZE = r"(?i)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt]?)(?:i?b)?"
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


_ELSEWHERE = 80  # columns without a terminal
_NARROWEST = 40

_DURATION = r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ns|us|µs|ms|s|min|m|h)?"
_DURATION_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}

# Bytes of all buffers of a recording. A black box takes memory only for threads with events; its
# limits are PTT_BOX_MEMORY and PTT_BOX_EVENTS in the tracer.
_BUDGET, _BOX_MEMORY, _BOX_EVENTS = 64 << 20, 256 << 20, 256


def size(text: str) -> int:
    """Parse a size, such as `4096`, `64K`, `1.5M` or `1G`, for `type=` of an option.

    Returns:
        Bytes; units are powers of 1024.
    """
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 4096, 64K, 16M or 1G")
    return _scaled(match["number"], _SIZE_UNITS[match["unit"].lower()])


def duration_ns(text: str) -> int:
    """Parse a duration, such as `250ns`, `10us`, `1.5ms`, `2s`, `3m` or `1h`, for `type=`.

    Returns:
        Nanoseconds; a number without a unit means seconds.
    """
    match = re.fullmatch(_DURATION, text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 10us, 1.5ms or 2s")
    return _scaled(match["number"], _DURATION_UNITS[match["unit"] or "s"])


def confidence(text: str) -> float:
    """Parse a confidence level in per cent, for `type=` of an option; return a fraction."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0.0
    if not 50 <= percent < 100:  # noqa: PLR2004 -- 50 is the confidence of a coin
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 50 to below 100")
    return percent / 100


def _scaled(number: str, unit: int) -> int:
    """Return a decimal number times a unit, exactly, rounded down."""
    whole, _, fraction = number.partition(".")
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


def add_format(
    parser: argparse._ActionsContainer, choices: Sequence[str] = ("text", "json", "csv")
) -> None:
    """Add `--format`; the first choice is the default."""
    parser.add_argument(
        "--format", choices=choices, default=choices[0],
        help=f"output format: {', '.join(choices)} (default: {choices[0]})",
    )  # fmt: skip


def add_show(parser: argparse._ActionsContainer, where: str) -> None:
    """Add `--show`, which chooses the waits or holds that are added up by call stack.

    Args:
        parser: The parser.
        where: The option or formats that `--show` applies to, for its help.
    """
    parser.add_argument(
        "--show", choices=("waits", "holders", "holds", "idle", "inside"),
        help=f"{where}: add up contended waits by the stacks of the waiters (waits, the default), "
        "of the holders (holders) or of what the holders did meanwhile (inside), or add up holds "
        "or idle waits",
    )  # fmt: skip


def add_trace(parser: argparse._ActionsContainer) -> None:
    """Add a TRACE argument, as `args.trace`."""
    parser.add_argument("trace", metavar="TRACE", help="a trace directory")


def program_words(args: argparse.Namespace) -> Sequence[str]:
    """Return the program with its arguments, of a command whose last argument is CMD.

    Args:
        args: The parsed arguments; `cmd` is what follows the options.
    """
    words: list[str] = args.cmd
    return words[1:] if words[:1] == ["--"] else words


def refuse_others(
    args: argparse.Namespace,
    configure: Callable[[argparse.ArgumentParser], None],
    allowed: Collection[str],
    why: str,
) -> None:
    """Refuse options of a command that make no sense here.

    Args:
        args: The arguments of the command.
        configure: Adds the options of the command to a parser.
        allowed: The arguments that make sense.
        why: Follows the name of the option in the message.

    Raises:
        UsageError: Another option was given.
    """
    parser = argparse.ArgumentParser(add_help=False)
    configure(parser)
    for action in parser._actions:  # noqa: SLF001 -- nothing public lists options
        if action.dest not in allowed and getattr(args, action.dest) != action.default:
            raise UsageError(f"{action.option_strings[-1]} {why}")


def add_traces(parser: argparse._ActionsContainer) -> None:
    """Add one or more TRACE arguments, as `args.traces`; they form one traceset."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="+", help="trace directories, read as one traceset"
    )


def add_level(parser: argparse._ActionsContainer) -> None:
    """Add `--level`, of a recording."""
    level = parser.add_argument(
        "-l", "--level", metavar="SPEC",
        help="detail level: 0 to 4, DOMAIN=LEVEL,..., or the LEVEL_ names of PTT (default: 2; with "
        "--profile: 1)",
    )  # fmt: skip
    suggest(level, *_LEVELS)


def add_stacks(parser: argparse._ActionsContainer) -> None:
    """Add `--stacks` and `--user-stacks`, of a recording."""
    parser.add_argument(
        "--stacks", choices=("0", "8", "16", "64", "all"), default="16",
        help="stack depth for waiters and holders; all: 64 frames for every event (default: 16)",
    )  # fmt: skip
    parser.add_argument(
        "--user-stacks", action="store_true",
        help="also record call stacks of the program's own events",
    )  # fmt: skip


def add_buffer_budget(parser: argparse._ActionsContainer) -> None:
    """Add `--buffer-budget`, of a recording."""
    parser.add_argument(
        "--buffer-budget", metavar="SIZE", type=size, default=None,
        help="size of all buffers together (default: 64M, with --black-box 256M)",
    )  # fmt: skip


def add_black_box(parser: argparse._ActionsContainer, process: str) -> None:
    """Add `--black-box` and `--black-box-events`.

    Args:
        parser: The parser, or a group of it.
        process: What has the black box, as in the usage.
    """
    parser.add_argument(
        "--black-box", action="store_true",
        help=f"keep the newest events in the memory of {process}, without a recorder and without "
        f"files; if {process} hangs, ptt hang shows them",
    )  # fmt: skip
    parser.add_argument(
        "--black-box-events",
        metavar="N",
        type=int,
        default=None,
        help="with --black-box: about how many events each thread keeps at least (default: 256)",
    )


def box_events(args: argparse.Namespace) -> int:
    """Return `--black-box-events`, or its default, from the parsed arguments."""
    return _BOX_EVENTS if args.black_box_events is None else int(args.black_box_events)


def buffer_budget(args: argparse.Namespace) -> int:
    """Return the size of all buffers in bytes, from the parsed arguments."""
    if args.buffer_budget is not None:
        return int(args.buffer_budget)
    return _BOX_MEMORY if args.black_box else _BUDGET


def suggest(action: argparse.Action, *values: str) -> None:
    """Offer these values of an option in shell completion; the option takes other values, too."""
    vars(action)["suggestions"] = values


def say(args: argparse.Namespace, message: str, *, verbosity: int = 0) -> None:
    """Print a message on stderr, as `ptt: message`.

    Args:
        args: The parsed arguments, with the verbosity.
        message: One line.
        verbosity: Least verbosity that prints the message: 1 needs `-v`; `-q` hides 0.
    """
    if args.verbosity >= verbosity:
        print(end="", flush=True)  # keeps the order if stdout and stderr are the same file
        talk(message)


def say_error(error: Exception) -> None:
    """Print an error on stderr, as `ptt: error: message`."""
    talk(f"error: {one_line(error)}")


def columns() -> int:
    """Return the width of text: the width of the terminal, or 80 without a terminal."""
    if not sys.stdout.isatty():
        return _ELSEWHERE
    import shutil

    return max(shutil.get_terminal_size().columns, _NARROWEST)


def write_lines(lines: Iterable[str]) -> None:
    """Print lines of text on stdout, with control characters escaped."""
    sys.stdout.writelines(for_terminal(line.rstrip()) + "\n" for line in lines)


def write_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document on stdout."""
    import json

    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")


def write_csv(rows: Iterable[Sequence[Any]]) -> None:
    """Print rows of CSV on stdout; the first row is the header."""
    import csv

    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the engine for a store."""
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"),
        help="query a store with DuckDB in this process, or with Spark (default: duckdb)",
    )  # fmt: skip
    parser.add_argument(
        "--master", metavar="URL", help="Spark cluster (default: from the settings of Spark)"
    )
    parser.add_argument("--remote", metavar="URL", help="Spark Connect server, sc://HOST")


def chosen_engine(args: argparse.Namespace) -> dict[str, Any]:
    """Return the chosen engine, as arguments of `nptltrace.fleet.open`."""
    return {"engine": args.engine or "duckdb", "master": args.master, "remote": args.remote}
