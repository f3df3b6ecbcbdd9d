"""Waits: the list of the longest waits, and the details of a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_drawing, libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.ui import protocol
from nptltrace.ui.queries.holders import WaitTime, holders_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from nptltrace.ui.levels_of_detail import Levels
    from nptltrace.ui.ongoing import Ongoing
    from nptltrace.ui.queries.rows import Rows

__all__ = ["WaitFilters", "wait_chain", "wait_list"]

# The columns that ended waits and open waits share.
_SHARED = ("t_ns", "dur_ns", "thread", "object", "site", "owner", "wait_class", "open")
_CHAIN = 100
_CONTENDED = WAIT_CLASSES.index("contended")
_NOT_HELD = frozenset(WAIT_CLASSES.index(name) for name in ("idle", "join"))
_ROW = np.dtype(
    [(name, libptttrack_drawing.WAIT[name]) for name in _SHARED] + [("wait_id", np.uint32)]
)


@dataclass(frozen=True, slots=True)
class WaitFilters:
    """Which waits to list.

    Attributes:
        from_ns: Only waits that end at this time or later.
        to_ns: Only waits that begin before this time.
        least_ns: The least length of a wait, including its parts outside the range.
        wait_class: The class of the waits; the empty text for all.
        threads: Rows of threads; empty for all.
        objects: Rows of objects; empty for all.
        site: Part of the name of the call site, or its address; the empty text for all.
    """

    from_ns: int
    to_ns: int
    least_ns: int
    wait_class: str
    threads: list[int]
    objects: list[int]
    site: str


def wait_list(
    detail: libptttrack_drawing.Detail,
    ongoing: Ongoing | None,
    rows: Rows,
    wanted: WaitFilters,
    limit: int,
) -> pa.Table:
    """Return the longest waits that pass the filters. Waits that go on have no number."""
    sites = _sites(rows, wanted.site) if wanted.site else None
    parts = []
    for first, ended in detail.waits():
        waits = _with_shared_columns(ended)
        waits["wait_id"] = first + np.arange(len(ended))
        parts.append(waits[_is_wanted(waits, rows, wanted, sites)])
    if ongoing is not None:
        waits = _with_shared_columns(ongoing.waiting)
        parts.append(waits[_is_wanted(waits, rows, wanted, sites)])
    waits = np.concatenate(parts) if parts else np.zeros(0, _ROW)
    begin = np.maximum(waits["t_ns"], wanted.from_ns)
    inside = np.minimum(waits["t_ns"] + waits["dur_ns"], wanted.to_ns) - begin
    order = np.argsort(-waits["dur_ns"], kind="stable")[: max(limit, 0)]
    total, inside_ns = len(waits), int(inside.sum())
    return _table(waits[order], inside[order], rows).replace_schema_metadata(
        {"total": str(total), "inside_ns": str(inside_ns)}
    )


def _with_shared_columns(waits: NDArray[Any]) -> NDArray[Any]:
    listed = np.zeros(len(waits), _ROW)
    for name in _SHARED:
        listed[name] = waits[name]
    return listed


def _sites(rows: Rows, text: str) -> NDArray[Any]:
    """Return the numbers of the call sites with a text in the name, or with an address."""
    word = text.lower()
    addresses = rows.tables.sites["address"].tolist()
    numbers = range(1, len(addresses))
    return np.array(
        [n for n in numbers if word in rows.site(n).lower() or word == f"{addresses[n]:#x}"],
        np.uint32,
    )


def _is_wanted(
    waits: NDArray[Any], rows: Rows, wanted: WaitFilters, sites: NDArray[Any] | None
) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = (waits["thread"] > 0) & (waits["dur_ns"] >= wanted.least_ns)
    fits &= (waits["t_ns"] < wanted.to_ns) & (waits["t_ns"] + waits["dur_ns"] >= wanted.from_ns)
    if wanted.wait_class:
        number = WAIT_CLASSES.index(wanted.wait_class)
        fits &= waits["wait_class"] == number
    if wanted.threads:
        fits &= np.isin(waits["thread"], wanted.threads)
    if wanted.objects:
        fits &= np.isin(rows.tables.rows(waits["object"]), wanted.objects)
    if sites is not None:
        fits &= np.isin(waits["site"], sites)
    return fits


def _table(waits: NDArray[Any], inside: NDArray[Any], rows: Rows) -> pa.Table:
    threads = [rows.thread(row) for row in waits["thread"].tolist()]
    owners = [rows.thread(row) for row in waits["owner"].tolist()]
    objects = [rows.object(number) for number in waits["object"].tolist()]
    return protocol.table(
        protocol.WAITS,
        {
            "wait_id": waits["wait_id"],
            "state": 1 + waits["wait_class"],
            "flags": np.where(waits["open"] > 0, protocol.FLAGS["open"], 0),
            "t_ns": waits["t_ns"],
            "dur_ns": waits["dur_ns"],
            "inside_ns": inside,
            "thread_row": waits["thread"],
            "thread": [thread["label"] if thread else "" for thread in threads],
            "object_row": rows.tables.rows(waits["object"]),
            "object": [f"{o['kind']} {o['name'] or o['object']}" if o else "" for o in objects],
            "site": [rows.site(number) for number in waits["site"].tolist()],
            "owner_row": waits["owner"],
            "owner": [owner["label"] if owner else "" for owner in owners],
        },
    )


def wait_chain(levels: Levels, rows: Rows, number: int) -> list[protocol.Wait]:
    """Return a wait, the wait of its owner at that time, and so on; empty without such a wait.

    Args:
        levels: The levels of detail of the traceset.
        rows: The rows of the timeline.
        number: The number of the wait.
    """
    chain: list[protocol.Wait] = []
    seen: set[int] = set()
    detail = levels.detail
    while detail and 0 < number < 2**32 and number not in seen and len(chain) < _CHAIN:
        wait = detail.wait(number)
        described = None if wait is None else _described(levels, rows, number, wait)
        if wait is None or described is None:
            break
        # An earlier wait of the same thread is not the reason for a wait of another thread.
        if chain and chain[-1]["thread"]["row"] == described["thread"]["row"]:
            break
        chain.append(described)
        seen.add(number)
        number = int(wait["parent"])
    return chain


def _described(levels: Levels, rows: Rows, number: int, wait: Any) -> protocol.Wait | None:
    """Return all details of a wait in the levels of detail."""
    thread, object_ = rows.thread(int(wait["thread"])), rows.object(int(wait["object"]))
    if thread is None or object_ is None:
        return None
    wait_class, owner, woken = (int(wait[name]) for name in ("wait_class", "owner", "waker_t_ns"))
    t_ns, dur_ns, held_ns = (int(wait[name]) for name in ("t_ns", "dur_ns", "held_ns"))
    is_contended = wait_class == _CONTENDED
    holders = None
    if wait_class not in _NOT_HELD:
        time = WaitTime(thread["row"], object_["row"], t_ns, t_ns + dur_ns)
        holders = holders_of(levels.single_spans, rows, time)
    return {
        "wait_id": number,
        "t_ns": t_ns,
        "dur_ns": dur_ns,
        "held_ns": held_ns if is_contended else None,
        "wake_ns": dur_ns - held_ns if is_contended else None,
        "wait_class": WAIT_CLASSES[min(wait_class, len(WAIT_CLASSES) - 1)],
        "kind": libptttrack_sums.KINDS.get(int(wait["kind"]), "object"),
        "mode": "shared" if wait["mode"] else "exclusive",
        "open": bool(wait["open"]),
        "result": int(wait["result"]),
        "queue_depth": int(wait["queue_depth"]),
        "thread": thread,
        "object": object_,
        "site": rows.site(int(wait["site"])),
        "stack": rows.stack(int(wait["thread"]), int(wait["stack"]), int(wait["site"])),
        "owner": rows.thread(owner),
        "owner_site": rows.site(int(wait["owner_site"])),
        "owner_stack": rows.stack(owner, int(wait["holder_stack"]), int(wait["holder_site"])),
        "owner_since_ns": levels.held_since(owner, object_["row"], t_ns),
        "waker": rows.thread(int(wait["waker"])),
        "waker_site": rows.site(int(wait["waker_site"])),
        "waker_t_ns": None if woken == libptttrack_sums.NEVER else woken,
        "ready_ns": int(wait["ready_ns"]) if wait["ready_ns"] >= 0 else None,
        "holders": holders,
    }
