"""Modules of which not all is in a trace, as the traced processes reported at their ends."""

from __future__ import annotations

import mmap
import os
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
    found: dict[str, None] = {}
    for line in _lines(session):
        how, _, path = line.removeprefix("\t").partition("\t")
        if not line.startswith("\t") or path in found:
            continue
        if how == "futex" or (how == "syscall" and _calls_futex(Path(path))):
            found[path] = None
    return list(found)


def _calls_futex(path: Path) -> bool:
    """Return whether the code of a module gives syscall() the number of the system call futex.

    Of a file that cannot be read it is assumed.
    """
    number = _FUTEX.get(os.uname().machine)
    try:
        if number is None or not path.is_file():
            return True
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code:
            return any(code.find(instruction) >= 0 for instruction in number)
    except (OSError, ValueError):
        return True


def _lines(session: Path) -> Iterator[str]:
    for name in sorted(names_in(session)):
        if not name.startswith("uncovered-"):
            continue
        try:
            text = (session / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        yield from text.splitlines()
