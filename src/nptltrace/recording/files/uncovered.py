"""Modules of which not all is in a trace, as the traced processes reported at their ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from nptltrace._units import duration, plural
from nptltrace.recording import launch
from nptltrace.recording.files.session import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["futex_modules", "uncovered", "untraced", "without_events"]

# Instructions that put the number of the system call into the register of the first argument.
_FUTEX = {
    "x86_64": [b"\xbf\xca\x00\x00\x00"],
    "aarch64": [b"\x40\x0c\x80\x52", b"\x40\x0c\x80\xd2"],
}
_CODE_MAX, _PIECE = 1 << 28, 1 << 20
_TEXT_MAX, _MODULES_MAX = 1 << 20, 64
# A pipe must not make us wait for its other end.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def uncovered(session: Path) -> list[dict[str, str]]:
    """Return the modules whose thread calls went past the tracer, each with the reason.

    Args:
        session: The session directory.
    """
    found: dict[str, str] = {}
    for line in _lines(session):
        module, _, why = line.partition("\t")
        if module:
            found.setdefault(module, why)
    return [{"module": module, "why": why} for module, why in found.items()]


def untraced(programs: Sequence[str], callers: Sequence[str]) -> list[dict[str, str]]:
    """Return programs that ran untraced, each with the reason.

    Args:
        programs: Their files; traced processes executed them.
        callers: Programs that executed others, which had ended before anybody saw them.
    """
    found: list[dict[str, str]] = []
    for path in dict.fromkeys(programs):
        why = launch.why_untraceable(Path(path)) or "it could not join the recording"
        found.append({"module": path, "why": f"a traced process ran it untraced: {why}"})
    ran = "it executed a program that ran untraced"
    return found + [{"module": path, "why": ran} for path in dict.fromkeys(callers)]


def without_events(pid: int, threads: int, elapsed_ns: int) -> list[dict[str, str]]:
    """Return a process of which there is no event, with what is known of it.

    Args:
        pid: The process.
        threads: How many threads it had.
        elapsed_ns: How long it was recorded.
    """
    many = f"{threads} {plural(threads, 'thread')}"
    why = f"its {many} made no call that PTT records in {duration(elapsed_ns)}"
    return [{"module": f"process {pid}", "why": why}]


def futex_modules(session: Path) -> list[str]:
    """Return the modules that have locks of Rust or C++20, which are futexes, compiled into them.

    Args:
        session: The session directory.
    """
    lines = (line.removeprefix("\t") for line in _lines(session) if line.startswith("\t"))
    marks = list(dict.fromkeys((path, how) for how, _, path in (x.partition("\t") for x in lines)))
    looked_at = [path for path, how in marks if how == "syscall"][:_MODULES_MAX]
    without = {path for path in looked_at if not _calls_futex(path)}
    return list(dict.fromkeys(path for path, _ in marks if path not in without))


def _calls_futex(path: str) -> bool:
    """Return whether the code of a module gives syscall() the number of the system call futex.

    True as well if the file cannot be read, or is too large to be read here. The program names the
    file: it may be a pipe, have no end, or shrink meanwhile.
    """
    numbers = _FUTEX.get(os.uname().machine)
    if numbers is None:
        return True
    try:
        fd = os.open(path, _READ)
    except (OSError, ValueError):
        return True
    with os.fdopen(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _CODE_MAX:
            return True
        end = b""
        while piece := file.read(_PIECE):
            code = end + piece
            if any(number in code for number in numbers):
                return True
            end = code[-8:]
    return False


def _lines(session: Path) -> Iterator[str]:
    """Yield what processes have written down; a program may put anything else there."""
    for name in sorted(names_in(session)):
        if not name.startswith("uncovered-"):
            continue
        try:
            fd = os.open(session / name, _READ | os.O_NOFOLLOW)
            with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
                text = file.read(_TEXT_MAX)
        except OSError:
            continue
        yield from text.splitlines()
