"""The command `ptt`: one module for each command, imported on demand.

A command is a module of `nptltrace.cli.commands`. It has

* `SUMMARY`: one line for `ptt --help`;
* `EXAMPLE`: the end of `ptt COMMAND --help`;
* `configure(parser)`: adds the options;
* `run(args)`: does the work and returns the exit status.

Optional: `DESCRIPTION`, one or more paragraphs between summary and options; `INTERMIXED = True`,
which allows options between arguments of different meaning; `PROGRAM = True`: the words
behind `--` are no options, and go to `args.cmd`. Modules import only the standard
library at their top. `run` imports heavy modules.
"""

from __future__ import annotations

from nptltrace.cli import imports  # first: it imports argparse and pathlib in a cheaper way

# isort: split

import argparse
import gc
import io
import os
import signal
import sys
from importlib import import_module
from itertools import takewhile

from nptltrace._escaping import talk
from nptltrace._version import __version__
from nptltrace.cli import commands
from nptltrace.errors import PttError, UsageError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn, Protocol
else:
    Protocol = object

__all__ = [
    "Command",
    "command_names",
    "command_parser",
    "entry",
    "load_command",
    "main",
    "top_help",
    "top_parser",
]

# The order of the commands in `ptt --help`; others follow by name.
_ORDER = (
    "record", "check", "confirm", "reproduce", "explore", "hang", "guard", "attach", "report", "ui",
    "view", "stat", "top", "diff", "sql", "fleet", "export", "cut", "split", "merge",
    "bundle", "level", "recover", "verify", "nptl", "mcp", "json-schema", "config", "completion",
    "help",
)  # fmt: skip

# Names in other tools.
_ALIASES = {"dump": "hang"}

_GARBAGE = 20_000  # new objects until the next garbage collection

EXIT_USAGE = 2
EXIT_INTERNAL = 70  # EX_SOFTWARE of sysexits.h: neither the user's mistake nor a finding
EXIT_INTERRUPTED = 128 + 2
EXIT_PIPE = 128 + 13


class Command(Protocol):
    """The interface of the module of a command."""

    SUMMARY: str
    EXAMPLE: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options and arguments of the command."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work and return the exit status."""


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter of help with the width of the terminal.

    Without a width, argparse imports shutil and half of the standard library.
    """
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        columns = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=columns - 2)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` instead of exiting."""

    def format_help(self) -> str:
        """Return the help, with a description as wide as the terminal."""
        self.description = _filled(self.description or "")
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Report wrong usage."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def command_names() -> list[str]:
    """Return the names of all commands, in the order of `ptt --help`."""
    # Without pkgutil, which imports half of the standard library.
    names = {
        name.removesuffix(".py").replace("_", "-")
        for place in commands.__path__
        for name in os.listdir(place)  # noqa: PTH208 -- pathlib is not imported yet
        if name.endswith(".py") and name != "__init__.py"
    }
    first = [name for name in _ORDER if name in names]
    return first + sorted(names.difference(first))


def load_command(name: str) -> Command:
    """Import the module of a command.

    Args:
        name: The command in `ptt NAME`, or an alias.

    Raises:
        UsageError: There is no such command.
    """
    name = _ALIASES.get(name, name)
    if name not in command_names():
        from difflib import get_close_matches

        close = get_close_matches(name, command_names(), n=1)
        hint = f"; did you mean {close[0]}?" if close else " (see ptt --help)"
        raise UsageError(f"no command {name!r}{hint}")
    module: Any = import_module(f"{commands.__name__}.{name.replace('-', '_')}")
    command: Command = module
    return command


def top_parser() -> Parser:
    """Return the parser of the words before the command."""
    parser = Parser(
        prog="ptt",
        usage="ptt [options] COMMAND ...",
        description="Find out why a multithreaded program hangs or is slow.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    _add_common(parser, debug=False, verbose=0, quiet=0)
    parser.add_argument("-V", "--version", action="version", version=f"ptt {__version__}")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def command_parser(name: str) -> Parser:
    """Return the parser of a command."""
    command = load_command(name)
    description: str = getattr(command, "DESCRIPTION", "")
    parser = Parser(
        prog=f"ptt {name}",
        description=f"{command.SUMMARY}\n\n{description}".strip(),
        epilog=f"example:\n{_indent(command.EXAMPLE)}",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    command.configure(parser)
    # SUPPRESS: an option before the command keeps its value, unless it is repeated here.
    _add_common(parser, debug=argparse.SUPPRESS, verbose=argparse.SUPPRESS, quiet=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ptt` and return its exit status.

    Args:
        argv: The arguments after the program's name; None: the arguments of the process.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    # Not from the parser, because parsing may fail.
    debug = "--debug" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads our output. Prevent a second error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (PttError, OSError) as error:
        if debug:
            raise
        from nptltrace.cli.options import say_error

        say_error(error)
        return error.exit_status if isinstance(error, PttError) else EXIT_USAGE
    except Exception as error:
        if debug:
            raise
        return _unexpected(error)
    return status


def _unexpected(error: Exception) -> int:
    """Print an error that no code expects, and return the exit status."""
    if isinstance(error, ModuleNotFoundError):
        from nptltrace.cli.missing import missing_libraries

        line = missing_libraries(error)
        if line is not None:
            talk(f"error: {line}")
            return EXIT_USAGE
    what = f"{type(error).__name__}: {one_line(error)}"
    talk(f"internal error: {what} (--debug shows where)")
    return EXIT_INTERNAL


def entry() -> NoReturn:
    """Run `ptt` as a program, and end the process."""
    # Imported objects stay alive, so frequent garbage collections find nothing.
    gc.set_threshold(_GARBAGE)
    imports.import_late()
    _fill_standard_streams()
    for stream in (sys.stdout, sys.stderr):  # print any name in any encoding
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        # `nptltrace.__main__` set SIG_DFL for the time of the imports.
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = main()
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    _end(status)


def _end(status: int) -> NoReturn:
    """End the process without the finalization of the interpreter.

    Finalization takes as long as finishing the trace of a short program. It is not safe, either:
    libraries have threads that Python does not know. Such a thread may need the interpreter to
    return a buffer or to close a file. Then pthread_exit() ends it in the middle of C++ or Rust
    code, which aborts the process.
    """
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # noqa: SLF001 -- waits for Python's threads
        if "atexit" in sys.modules:
            sys.modules["atexit"]._run_exitfuncs()  # noqa: SLF001 -- there is no public function
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _fill_standard_streams() -> None:
    """Open /dev/null for closed standard streams.

    Otherwise the next opened file gets the number of the stream, and the writes to it. The new
    descriptors are not inherited: child programs find the streams closed. Writes to the standard
    output fail.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _dispatch(arguments: list[str]) -> int:
    """Find the command, parse its arguments and run it."""
    parser = top_parser()
    options = takewhile(lambda word: word.startswith("-"), arguments)
    if any(word in {"-h", "--help"} for word in options):
        print(top_help(), end="")
        return 0
    try:
        args = parser.parse_args(arguments)
        if args.command is None:
            raise UsageError("no command given (see ptt --help)")
        name, rest = args.command, args.rest
        del args.command, args.rest
        own_parser = command_parser(name)
        program: list[str] = []
        if getattr(load_command(name), "PROGRAM", False) and "--" in rest:
            at = rest.index("--")
            rest, program = rest[:at], rest[at + 1 :]
        intermixed = getattr(load_command(name), "INTERMIXED", False)
        (own_parser.parse_intermixed_args if intermixed else own_parser.parse_args)(rest, args)
        if program:
            args.cmd = [*args.cmd, *program]
    except SystemExit as stop:  # --help and --version end the parser this way
        return int(stop.code or 0)
    args.verbosity = args.verbose - args.quiet
    if args.verbosity <= 0:
        return load_command(name).run(args)
    from nptltrace.trace.symbols.elf.display_names import whole_names

    with whole_names():
        return load_command(name).run(args)


def top_help() -> str:
    """Return the text of `ptt --help`, with a line for each command."""
    names = command_names()
    width = max(len(name) for name in names)
    lines = [f"  {name:<{width}}  {load_command(name).SUMMARY}\n" for name in names]
    return "".join(
        [
            top_parser().format_help(),
            "\ncommands:\n",
            *lines,
            "\nexample:\n",
            "  ptt record -o run.ptt -- ./program --its --options\n",
            "  ptt check run.ptt\n",
            "  ptt report run.ptt\n",
            "  ptt ui run.ptt\n",
            "\nRun `ptt COMMAND --help` for the options of a command.\n",
        ]
    )


def _add_common(
    parser: argparse.ArgumentParser, *, debug: bool | str, verbose: int | str, quiet: int | str
) -> None:
    """Add the options that all commands have, before and after the name of the command."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "-v", "--verbose", action="count", default=verbose,
        help="print more messages on stderr, and whole names of C++ functions; repeatable",
    )  # fmt: skip
    group.add_argument(
        "-q", "--quiet", action="count", default=quiet,
        help="print fewer messages on stderr; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--debug", action="store_true", default=debug, help="print the traceback of an error"
    )


def _filled(text: str) -> str:
    """Return text with paragraphs as wide as the terminal, and indented blocks unchanged."""
    import shutil
    import textwrap

    width = max(40, min(shutil.get_terminal_size().columns - 2, 100))
    return "\n\n".join(
        block if block.startswith(" ") else textwrap.fill(" ".join(block.split()), width)
        for block in text.split("\n\n")
    )


def _indent(text: str) -> str:
    """Return text with each line indented by two columns."""
    return "\n".join(f"  {line}" for line in text.strip().splitlines())
