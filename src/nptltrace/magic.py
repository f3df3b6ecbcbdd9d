"""`%%ptt` of IPython and Jupyter: records a cell and prints the report."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any, Protocol

from nptltrace import _paths
from nptltrace._escaping import talk
from nptltrace.errors import PttError
from nptltrace.here import record_here

__all__ = ["load_ipython_extension"]

_TRACE = "cell.ptt"


class Shell(Protocol):
    """The part of IPython's `InteractiveShell` that the magic uses."""

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Make a function a magic."""

    def run_cell(self, raw_cell: str) -> Any:
        """Run code like the code of a cell."""


def load_ipython_extension(shell: Shell) -> None:
    """Add `%%ptt` to the shell; `%load_ext nptltrace` calls this function.

    Args:
        shell: The shell of IPython.
    """

    def record_cell(line: str, cell: str) -> None:
        """Record a cell, and print what its threads waited for.

        `%%ptt [DIR] [OPTION...]`: DIR is the trace directory (default: cell.ptt). An existing trace
        is replaced. The options are the options of `ptt report`.
        """
        words = shlex.split(line)
        paths = [words.pop(0)] if words and not words[0].startswith("-") else []
        trace = Path(*(paths or [_TRACE]))
        try:
            with record_here(trace, force=True):
                shell.run_cell(cell)
        except PttError as error:
            talk(f"error: {error}")
            return
        print(_report(trace, words), end="")

    shell.register_magic_function(record_cell, "cell", "ptt")


def _report(trace: Path, options: list[str]) -> str:
    """Return what `ptt report` prints, errors included."""
    done = subprocess.run(
        _paths.ptt_command("report", *options, "--", str(trace)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
        check=False,
    )  # fmt: skip
    return done.stdout
