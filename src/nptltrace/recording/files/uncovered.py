"""Modules of which not all is in a trace, as the traced processes reported at their ends."""

from __future__ import annotations

from pathlib import Path

from nptltrace._units import duration, plural
from nptltrace.recording import launch
from nptltrace.recording.files.session import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["futex_modules", "uncovered", "untraced", "without_events"]


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
    mark = "\tfutex\t"
    found = (line.removeprefix(mark) for line in _lines(session) if line.startswith(mark))
    return list(dict.fromkeys(found))


def _lines(session: Path) -> Iterator[str]:
    for name in sorted(names_in(session)):
        if not name.startswith("uncovered-"):
            continue
        try:
            text = (session / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        yield from text.splitlines()
