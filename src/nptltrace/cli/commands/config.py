"""`ptt config`: prints the paths of installed files, and writes the settings of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace import _paths
from nptltrace.cli.settings import Settings
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from pathlib import Path

SUMMARY = "print the paths of installed files, and remember settings"
DESCRIPTION = """\
Prints one path per line, in the order of the options, for scripts and makefiles. With --skip, PTT
remembers functions and modules to skip when naming call sites, as if you passed --skip to every
command. An empty list removes them."""
EXAMPLE = """\
LD_PRELOAD=$(ptt config --preload) PTHREAD_NPTL_TRACE=text ./program
cc -shared -fPIC -I$(ptt config --includedir) -o libmine.so mine.c
PKG_CONFIG_PATH=$(ptt config --pkgconfigdir) pkg-config --cflags nptltrace
ptt config --skip 'my_lock,libwrapper.so*'"""

_QUESTIONS: dict[str, tuple[str, Callable[[], Iterable[Path | str]]]] = {
    "preload": ("the library to put in LD_PRELOAD", lambda: [_paths.preload_path()]),
    "includedir": ("the C headers", lambda: [_paths.include_dir()]),
    "libdir": ("the libraries", lambda: [_paths.lib_dir()]),
    "pkgconfigdir": ("the pkg-config files", lambda: [_paths.pkgconfig_dir()]),
    "mandir": ("the manual pages, as man -M takes them", lambda: [_paths.man_dir()]),
    "handlers": ("the handlers, one a line", lambda: _paths.handlers().values()),
    "settings": ("the file of the settings", lambda: [Settings.path()]),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add an option for each question."""
    for name, (what, _) in _QUESTIONS.items():
        parser.add_argument(
            f"--{name}", dest="questions", action="append_const", const=name, help=f"print {what}"
        )
    parser.add_argument(
        "--skip",
        metavar="PATTERN,…",
        help="always skip these functions and modules when naming call sites",
    )


def run(args: argparse.Namespace) -> int:
    """Write the settings, and print the answers."""
    if args.skip is not None:
        from nptltrace.trace.passed_over import patterns

        Settings(tuple(patterns(args.skip)) if args.skip else ()).write()
    elif not args.questions:
        asked = ", ".join(f"--{name}" for name in _QUESTIONS)
        raise UsageError(f"choose what to print: {asked}")
    for name in args.questions or ():
        _, answer = _QUESTIONS[name]
        for path in answer():
            print(path)
    return 0
