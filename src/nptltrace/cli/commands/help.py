"""`ptt help`: prints the same text as `--help`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli.options import suggest

if TYPE_CHECKING:
    import argparse

SUMMARY = "print the help of a command"
EXAMPLE = """\
ptt help
ptt help report"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from nptltrace.cli import command_names

    named = parser.add_argument(
        "name", metavar="COMMAND", nargs="?", help="command to explain (default: list all commands)"
    )
    suggest(named, *command_names())


def run(args: argparse.Namespace) -> int:
    """Print the help."""
    from nptltrace.cli import command_parser, top_help

    print(top_help() if args.name is None else command_parser(args.name).format_help(), end="")
    return 0
