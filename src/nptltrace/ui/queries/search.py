"""The search of the page: threads, objects, call sites, types of events, and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace.trace.selection import event_names

if TYPE_CHECKING:
    from nptltrace.ui import protocol
    from nptltrace.ui.queries.rows import Rows

__all__ = ["hits"]

_MAX_SITES = 20_000


def hits(text: str, limit: int, rows: Rows, findings: protocol.Findings | None) -> protocol.Hits:
    """Return the things that contain a text, in upper or lower case.

    Args:
        text: The text.
        limit: How many hits at most.
        rows: The rows of the timeline.
        findings: The findings of `ptt check`; None before the search for bugs is over.
    """
    places: list[protocol.Hit] = []
    for by in ("thread", "object"):
        table = rows.table(by, text=text, limit=limit + 1)
        columns = ("row", "label", "kind", "object", "pid")
        places += [
            _hit(by, label, f"{kind} {address}".strip() + f" of process {pid}", row=row)
            for row, label, kind, address, pid in zip(
                *(table[name].to_pylist() for name in columns), strict=True
            )
        ]
    word = text.lower()
    sites = {rows.site(n): None for n in range(1, min(len(rows.tables.sites), _MAX_SITES))}
    places += [_hit("site", name) for name in sites if word in name.lower()]
    places += [_hit("event", name) for name in event_names() if word in name.lower()]
    places += [
        _hit("finding", finding["message"], finding["kind"], finding["ts_ns"])
        for finding in (() if findings is None else findings["findings"])
        if word in f"{finding['kind']} {finding['message']}".lower()
    ]
    return {"hits": places[:limit], "more": len(places) > limit}


def _hit(
    kind: Any, label: str, about: str = "", t_ns: int | None = None, row: int = 0
) -> protocol.Hit:
    by: Any = kind if row else ""
    return {"kind": kind, "by": by, "row": row, "label": label, "about": about, "t_ns": t_ns}
