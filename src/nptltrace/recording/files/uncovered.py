"""Modules of which not all is in a trace, as the traced processes reported at their ends."""

from __future__ import annotations

from nptltrace.recording.files.session import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["futex_modules", "uncovered"]


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
