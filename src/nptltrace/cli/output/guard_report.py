"""The directory of a report of `ptt guard`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._escaping import for_terminal, readable
from nptltrace._files.directories import Directory
from nptltrace.cli.output.text import hang_text
from nptltrace.errors import PttError, UsageError
from nptltrace.guard.surroundings import file_lines, output_tails, tree_lines
from nptltrace.hang.documents import hang_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nptltrace.guard.evidence import Look
    from nptltrace.guard.report import Report

__all__ = ["core_writer", "sentence", "write", "write_cores"]

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


def write(report: Report, place: Path, output: Iterable[str] | None = None) -> None:
    """Write the files of a report.

    Args:
        report: The report.
        place: The directory, which is empty.
        output: The last lines of output, if they were kept.

    Raises:
        PttError: A file cannot be written.
    """
    try:
        with Directory.open(place) as directory:
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
        PttError: `gcore` fails for a process. The core files of other processes are there.
    """
    involved = {seen.pid for verdict in report.cause.verdicts for seen in verdict.threads}
    faults: list[str] = []
    for pid in sorted(involved or {report.cause.pid} - {0} or report.pids):
        try:
            # gcore would follow a link. Nobody else can make a link in a directory of this mode.
            with tempfile.TemporaryDirectory(prefix="core.", dir=place) as folder:
                why = _gcore(pid, Path(folder, "core"))
                if not why:
                    Path(folder, f"core.{pid}").rename(place / f"core.{pid}")
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            faults.append(f"cannot write a core file of process {pid}: {why}")
    if faults:
        raise PttError("; ".join(faults))


def _gcore(pid: int, path: Path) -> str:
    """Write a core file, and return why that failed, or the empty string."""
    with subprocess.Popen(
        [core_writer(), "-o", path, str(pid)], stdin=subprocess.DEVNULL, text=True,
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        # The guard blocks signals, and gdb needs them. The function makes only a system call.
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()),  # noqa: PLW1509
    ) as gcore:  # fmt: skip
        try:
            _, said = gcore.communicate(timeout=_CORE_S)
        except subprocess.TimeoutExpired:
            os.killpg(gcore.pid, signal.SIGKILL)  # gcore is a script, which starts gdb
            return f"gcore takes longer than {_CORE_S} s"
    return (said.strip() or "gcore failed").splitlines()[-1] if gcore.returncode else ""


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
