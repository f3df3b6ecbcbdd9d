"""The list of waits: those of some length, in a range, of some threads, objects and call sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_drawing
from nptltrace._dataclasses import dataclass
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.ui import protocol
from nptltrace.ui.arrow_stream import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from nptltrace.ui.answers.ongoing import Going
    from nptltrace.ui.answers.rows import Rows

__all__ = ["Wanted", "wait_list"]

# What waits that have ended and those that go on share.
_SHARED = ("t_ns", "dur_ns", "thread", "object", "site", "owner", "wait_class", "open")
_ROW = np.dtype(
    [(name, libptttrack_drawing.WAIT[name]) for name in _SHARED] + [("wait_id", np.uint32)]
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which waits are wanted.

    Attributes:
        from_ns: They end at this time or later.
        to_ns: They begin before it.
        least_ns: They are as long, also where a part of them lies outside.
        wait_class: Their class; the empty text for all.
        threads: Rows of threads; empty for all.
        objects: Rows of objects; empty for all.
        site: Part of the name of their call site, or its address; the empty text for all.
    """

    from_ns: int
    to_ns: int
    least_ns: int
    wait_class: str
    threads: list[int]
    objects: list[int]
    site: str


def wait_list(
    detail: libptttrack_drawing.Detail, going: Going | None, known: Rows, wanted: Wanted, limit: int
) -> pa.Table:
    """Return the longest of the waits that are wanted; those that go on have no number."""
    sites = _sites(known, wanted.site) if wanted.site else None
    parts = [
        some[_fits(some, known, wanted, sites)]
        for some in (*_ended(detail), *([] if going is None else [_going(going)]))
    ]
    found = np.concatenate(parts) if parts else np.zeros(0, _ROW)
    begin = np.maximum(found["t_ns"], wanted.from_ns)
    inside = np.minimum(found["t_ns"] + found["dur_ns"], wanted.to_ns) - begin
    order = np.argsort(-found["dur_ns"], kind="stable")[: max(limit, 0)]
    total, inside_ns = len(found), int(inside.sum())
    return _shown(found[order], inside[order], known).replace_schema_metadata(
        {"total": str(total), "inside_ns": str(inside_ns)}
    )


def _ended(detail: libptttrack_drawing.Detail) -> Iterator[NDArray[Any]]:
    for first, waits in detail.waits():
        found = _shared(waits)
        found["wait_id"] = first + np.arange(len(waits))
        yield found


def _going(going: Going) -> NDArray[Any]:
    return _shared(going.waiting)


def _shared(waits: NDArray[Any]) -> NDArray[Any]:
    found = np.zeros(len(waits), _ROW)
    for name in _SHARED:
        found[name] = waits[name]
    return found


def _sites(known: Rows, text: str) -> NDArray[Any]:
    """Return the numbers of the call sites that a text is a part of."""
    word = text.lower()
    addresses = known.tables.sites["address"].tolist()
    numbers = range(1, len(addresses))
    return np.array(
        [n for n in numbers if word in known.site(n).lower() or word == f"{addresses[n]:#x}"],
        np.uint32,
    )


def _fits(
    waits: NDArray[Any], known: Rows, wanted: Wanted, sites: NDArray[Any] | None
) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = (waits["thread"] > 0) & (waits["dur_ns"] >= wanted.least_ns)
    fits &= (waits["t_ns"] < wanted.to_ns) & (waits["t_ns"] + waits["dur_ns"] >= wanted.from_ns)
    if wanted.wait_class:
        number = WAIT_CLASSES.index(wanted.wait_class)
        fits &= waits["wait_class"] == number
    if wanted.threads:
        fits &= np.isin(waits["thread"], wanted.threads)
    if wanted.objects:
        fits &= np.isin(known.tables.rows(waits["object"]), wanted.objects)
    if sites is not None:
        fits &= np.isin(waits["site"], sites)
    return fits


def _shown(found: NDArray[Any], inside: NDArray[Any], known: Rows) -> pa.Table:
    threads = [known.thread(row) for row in found["thread"].tolist()]
    owners = [known.thread(row) for row in found["owner"].tolist()]
    objects = [known.object(number) for number in found["object"].tolist()]
    return table(
        protocol.WAITS,
        {
            "wait_id": found["wait_id"],
            "state": 1 + found["wait_class"],
            "flags": np.where(found["open"] > 0, protocol.FLAGS["open"], 0),
            "t_ns": found["t_ns"],
            "dur_ns": found["dur_ns"],
            "inside_ns": inside,
            "thread_row": found["thread"],
            "thread": [thread["label"] if thread else "" for thread in threads],
            "object_row": known.tables.rows(found["object"]),
            "object": [f"{o['kind']} {o['name'] or o['object']}" if o else "" for o in objects],
            "site": [known.site(number) for number in found["site"].tolist()],
            "owner_row": found["owner"],
            "owner": [owner["label"] if owner else "" for owner in owners],
        },
    )
