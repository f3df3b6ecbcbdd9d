"""Modules whose thread calls went past the tracer, as the traced processes told when they ended."""

from __future__ import annotations

from nptltrace.recording.files.session import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["uncovered"]


def uncovered(session: Path) -> list[dict[str, str]]:
    """Return the modules, each with the reason, as they stand in `info/session.json`.

    Args:
        session: The session directory.
    """
    found: dict[str, str] = {}
    for name in sorted(names_in(session)):
        if not name.startswith("uncovered-"):
            continue
        try:
            text = (session / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            module, _, why = line.partition("\t")
            found.setdefault(module, why)
    return [{"module": module, "why": why} for module, why in found.items()]
