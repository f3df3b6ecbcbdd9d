"""`ptt config`: says where the installed files are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace import _paths
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from pathlib import Path

SUMMARY = "print where the installed files are"
DESCRIPTION = """\
Prints one path a line, in the order of the options, for scripts and makefiles."""
EXAMPLE = """\
LD_PRELOAD=$(ptt config --preload) PTHREAD_NPTL_TRACE=text ./program
cc -shared -fPIC -I$(ptt config --includedir) -o libmine.so mine.c
PKG_CONFIG_PATH=$(ptt config --pkgconfigdir) pkg-config --cflags nptltrace"""

_QUESTIONS: dict[str, tuple[str, Callable[[], Iterable[Path | str]]]] = {
    "preload": ("the library to put in LD_PRELOAD", lambda: [_paths.preload_path()]),
    "includedir": ("the C headers", lambda: [_paths.include_dir()]),
    "libdir": ("the libraries", lambda: [_paths.lib_dir()]),
    "pkgconfigdir": ("the pkg-config files", lambda: [_paths.pkgconfig_dir()]),
    "mandir": ("the manual pages, as man -M takes them", lambda: [_paths.man_dir()]),
    "handlers": ("the handlers, one a line", lambda: _paths.handlers().values()),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add an option for each question."""
    for name, (what, _) in _QUESTIONS.items():
        parser.add_argument(
            f"--{name}", dest="questions", action="append_const", const=name, help=f"print {what}"
        )


def run(args: argparse.Namespace) -> int:
    """Print the answers."""
    if not args.questions:
        asked = ", ".join(f"--{name}" for name in _QUESTIONS)
        raise UsageError(f"config prints what it is asked for: {asked}")
    for name in args.questions:
        _, answer = _QUESTIONS[name]
        for path in answer():
            print(path)
    return 0
