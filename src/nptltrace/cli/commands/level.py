"""`ptt level`: changes the detail levels of running processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.cli.options import say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse

SUMMARY = "change the detail level of a running recording"
DESCRIPTION = """\
SPEC is a number from 0 (off) to 4, DOMAIN=LEVEL,... (other domains keep their level), or names of
PTT (LEVEL_NONE, LEVEL_ALL, LEVEL_IO, LEVEL_MUTEX_ALL, ...; domains without a name are off). Without
SPEC, ptt prints the levels. The process must run under `ptt record`. For other processes, use
`ptt attach`."""
EXAMPLE = """\
ptt level 4711 3
ptt level --group 4711 mutex=3,cond=2
ptt level 4711"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options and arguments."""
    parser.add_argument(
        "--group", action="store_true",
        help="change all recorded processes in the process group of PID",
    )  # fmt: skip
    parser.add_argument("pid", metavar="PID", type=int, help="process that is being recorded")
    parser.add_argument(
        "spec", metavar="SPEC", nargs="?", help="new levels (default: print the levels)"
    )


def run(args: argparse.Namespace) -> int:
    """Change or print levels."""
    from nptltrace.recording.control import ControlPage, group_of
    from nptltrace.recording.settings.levels import parse_levels

    levels = parse_levels(args.spec, base=None) if args.spec is not None else None
    pages: list[ControlPage] = []
    for pid in group_of(args.pid) if args.group else [args.pid]:
        try:
            pages.append(ControlPage.of(pid))
        except UsageError:
            # A group may have processes that are not recorded, such as the recorder.
            if not args.group:
                raise
    if not pages:
        raise UsageError(f"no process of the group of {args.pid} is recorded")
    for page in pages:
        if levels is None:
            items = page.read().items()
            print(f"{page.pid} {','.join(f'{name}={level}' for name, level in items)}")
        else:
            page.write(levels)
            say(args, f"process {page.pid}: level {args.spec}", verbosity=1)
    return 0
