"""The directory of a report of `ptt guard`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from nptltrace._escaping import for_terminal, readable
from nptltrace._files.directories import Directory
from nptltrace.cli.output.text import hang_text
from nptltrace.errors import PttError, UsageError
from nptltrace.guard.surroundings import file_lines, output_tails, tree_lines
from nptltrace.hang.documents import hang_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nptltrace.guard.evidence import Look
    from nptltrace.guard.report import Report

__all__ = ["check_place", "core_writer", "free_place", "sentence", "write", "write_cores"]

_FILES = ("hang.json", "hang.txt", "stacks.txt", "tree.txt", "files.txt", "output.txt")
_LONGEST = 400
_CORE_S = 300


def sentence(report: Report) -> str:
    """Return the cause on one line."""
    cause = report.cause
    text = readable(cause.text)
    text = text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + " …"
    name = next((look.picture.name for look in report.looks if look.picture.pid == cause.pid), "")
    of = f" in process {cause.pid} ({name})" if name else ""
    return f"{cause.kind}{of}: {text}"


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place where no report can be written.

    Raises:
        UsageError: The directory is not empty and `force` is false, or it has files that do not
            belong to a report, or its parent does not exist.
    """
    parent = path.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"there is no directory {parent}; make it first")
    if not path.exists() and not path.is_symlink():
        return
    try:
        with Directory.open(path) as directory:
            names = directory.names()
            is_ours = directory.is_ours()
    except OSError as error:
        raise UsageError(f"{path} is not a directory: {error.strerror}") from None
    if not is_ours:
        raise UsageError(f"{path} belongs to another user; name a directory of your own")
    if names and not force:
        raise UsageError(f"{path} is not empty; pass --force to replace the report in it")
    foreign = [name for name in names if not _is_own(name)]
    if foreign:
        raise UsageError(f"{path} contains files that do not belong to a report, such as "
                         f"{foreign[0]}")  # fmt: skip


def free_place(path: Path, number: int) -> Path:
    """Return the place of the report with a number: a second report has a name of its own."""
    return path if number == 1 else path.with_name(f"{path.name}-{number}")


def write(report: Report, place: Path, output: Iterable[str] | None = None) -> None:
    """Write the files of a report.

    Args:
        report: The report.
        place: The directory.
        output: The last lines of output, if they were kept.

    Raises:
        PttError: A file cannot be written.
    """
    try:
        place.mkdir(exist_ok=True)
        with Directory.open(place) as directory:
            for name in directory.names():
                if _is_own(name):
                    directory.unlink(name)
            _put(directory, "hang.json", _json(report.looks))
            _put(directory, "hang.txt", _text(report, stacks=False))
            _put(directory, "stacks.txt", _text(report, stacks=True))
            _put(directory, "tree.txt", tree_lines(report.pids))
            _put(directory, "files.txt", file_lines(report.pids))
            lines = [*(output_tails(report.pids) if output is None else output)]
            kept = lines or ["no output is kept: --keep-output N keeps the last N lines"]
            _put(directory, "output.txt", kept)
    except OSError as error:
        raise PttError(f"cannot write the report {place}: {error.strerror}") from None


def core_writer() -> str:
    """Return the path of gdb's `gcore`.

    Raises:
        UsageError: It is not installed.
    """
    path = shutil.which("gcore")
    if path is None:
        raise UsageError("--core needs gcore, which comes with gdb")
    return path


def write_cores(report: Report, place: Path) -> None:
    """Write a core file of each process with the hang, by gdb's `gcore`.

    Raises:
        PttError: `gcore` fails.
    """
    involved = {seen.pid for verdict in report.cause.verdicts for seen in verdict.threads}
    for pid in sorted(involved or {report.cause.pid} - {0} or report.pids):
        done = subprocess.run(
            [core_writer(), "-o", place / "core", str(pid)], stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=_CORE_S, text=True, errors="replace",
            # The guard blocks signals, and gdb needs them.
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()),
        )  # fmt: skip
        if done.returncode:
            why = (done.stderr.strip() or "gcore failed").splitlines()[-1]
            raise PttError(f"cannot write a core file of process {pid}: {why}")


def _json(looks: Sequence[Look]) -> list[str]:
    documents = [hang_document(look.picture, look.verdicts, None) for look in looks]
    return [json.dumps(documents, indent=2)]


def _text(report: Report, *, stacks: bool) -> Iterable[str]:
    yield f"{sentence(report)}"
    yield f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}, after {report.passed_s:.1f} s"
    for look in report.looks:
        yield ""
        yield from hang_text.lines(
            look.picture, look.verdicts, None, stacks=stacks, stoppable=False
        )
    for pid, why in report.left_out.items():
        yield f"process {pid} is left out: {readable(why)}"


def _put(directory: Directory, name: str, lines: Iterable[str]) -> None:
    with os.fdopen(
        directory.create(name), "w", encoding="utf-8", errors="backslashreplace"
    ) as file:
        if name.endswith(".json"):
            file.writelines(f"{line}\n" for line in lines)
        else:
            file.writelines(f"{for_terminal(line.rstrip())}\n" for line in lines)


def _is_own(name: str) -> bool:
    return name in _FILES or name.startswith("core.")
