"""Modules with calls that are not in the trace, as reported by traced processes at their ends."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from nptltrace._files.whole import read_whole
from nptltrace._units import duration, plural
from nptltrace.recording import launch
from nptltrace.recording.files.session import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["futex_modules", "uncovered", "untraced", "without_events"]

# Instructions that load the number of futex(2) into the register of the first argument.
_FUTEX = {
    "x86_64": [b"\xbf\xca\x00\x00\x00"],
    "aarch64": [b"\x40\x0c\x80\x52", b"\x40\x0c\x80\xd2"],
}
_CODE_MAX, _PIECE = 1 << 28, 1 << 20
_TEXT_MAX, _MODULES_MAX = 1 << 20, 64


def uncovered(session: Path) -> list[dict[str, str]]:
    """Return the modules with thread calls that bypassed the tracer, each with the reason.

    Args:
        session: The session directory.
    """
    reasons: dict[str, str] = {}
    for line in _lines(session):
        module, _, why = line.partition("\t")
        if module:
            reasons.setdefault(module, why)
    return [{"module": module, "why": why} for module, why in reasons.items()]


def untraced(programs: Sequence[str], callers: Sequence[str]) -> list[dict[str, str]]:
    """Return programs that ran untraced, each with the reason.

    Args:
        programs: Their files; traced processes executed them.
        callers: Programs that executed a program that ended before the recorder noticed it.
    """
    modules: list[dict[str, str]] = []
    for path in dict.fromkeys(programs):
        why = launch.why_untraceable(Path(path)) or "it could not join the recording"
        modules.append({"module": path, "why": f"a traced process ran it untraced: {why}"})
    ran = "it executed a program that ran untraced"
    return modules + [{"module": path, "why": ran} for path in dict.fromkeys(callers)]


def without_events(pid: int, threads: int, elapsed_ns: int) -> list[dict[str, str]]:
    """Return an entry for a process without events.

    Args:
        pid: The process.
        threads: Number of its threads.
        elapsed_ns: Duration of its recording.
    """
    many = f"{threads} {plural(threads, 'thread')}"
    why = f"its {many} made no call that PTT records in {duration(elapsed_ns)}"
    return [{"module": f"process {pid}", "why": why}]


def futex_modules(session: Path) -> list[str]:
    """Return the modules that contain locks of Rust or C++20, which use futexes directly.

    Args:
        session: The session directory.
    """
    lines = (line.removeprefix("\t") for line in _lines(session) if line.startswith("\t"))
    marks = list(dict.fromkeys((path, how) for how, _, path in (x.partition("\t") for x in lines)))
    looked_at = [path for path, how in marks if how == "syscall"][:_MODULES_MAX]
    without = {path for path in looked_at if not _calls_futex(path)}
    return list(dict.fromkeys(path for path, _ in marks if path not in without))


def _calls_futex(path: str) -> bool:
    """Return whether the code of a module calls syscall() with the number of futex(2).

    True, too, if the file is unreadable or too large. The program chose the file: it may be a pipe,
    may have no end, or may shrink meanwhile.
    """
    numbers = _FUTEX.get(os.uname().machine)
    try:
        return numbers is None or any(n in code for code in _pieces(path) for n in numbers)
    except (OSError, ValueError):
        return True


def _pieces(path: str) -> Iterator[bytes]:
    """Yield a file in pieces; each piece begins with the end of the piece before.

    Raises:
        OSError: The file is unreadable, not a regular file, or too large.
    """
    # O_NONBLOCK: an open of a pipe must not wait for the other end.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _CODE_MAX:
            raise OSError(errno.EINVAL, "is not a regular file", path)
        end = b""
        while piece := os.read(fd, _PIECE):
            yield end + piece
            end = piece[-8:]
    finally:
        os.close(fd)


def _lines(session: Path) -> Iterator[str]:
    """Yield the lines of the reports of processes; programs may write other lines, too."""
    for name in sorted(names_in(session)):
        if not name.startswith("uncovered-"):
            continue
        try:
            text = read_whole(session / name, most=_TEXT_MAX, follow=False)
        except OSError:
            continue
        yield from text.decode("utf-8", "replace").splitlines()
