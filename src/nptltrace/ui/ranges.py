"""What analysis says of a traceset or a range of it, with the rows of the timeline beside it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace.analysis import _native as analysis
from nptltrace.analysis.contention import contention, told_by
from nptltrace.analysis.documents import report_document
from nptltrace.analysis.model import event_buffers
from nptltrace.catalog import BY_ID
from nptltrace.trace.source import Source
from nptltrace.ui.levels import new_model, process_ends

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from nptltrace.analysis.figures import Contention
    from nptltrace.analysis.model import Window
    from nptltrace.trace.symbols import Symbols
    from nptltrace.ui import protocol
    from nptltrace.ui.levels import Tables
    from nptltrace.ui.rows import Rows

__all__ = ["Ranges", "event_types", "used", "with_rows"]

_IDS = 1024
_KEPT = 8


class Ranges:
    """Looks at ranges, one at a time, with traces opened for that alone; the last ones are kept.

    Args:
        paths: The traces.
        symbols: Names addresses of the same traces.
    """

    def __init__(self, paths: Sequence[Path], symbols: Symbols) -> None:
        self._paths, self._symbols = paths, symbols
        self._lock = Lock()
        self._answers: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Forget the answers: the traces have changed."""
        self._answers = {}

    def contention(self, window: Window, *, pairs: bool, named: int) -> Contention:
        """Return the contention of a range; see `analysis.contention`."""
        found: Contention = self._answer(
            (window, pairs, named),
            lambda source: contention(
                source, self._symbols, window=window, pairs=pairs, named=named
            ),
        )
        return found

    def statistics(self, window: Window) -> tuple[Contention, NDArray[Any]]:
        """Return the contention of a range without names, and its events by type."""
        found: tuple[Contention, NDArray[Any]] = self._answer(
            (window,), lambda source: _counted(source, window)
        )
        return found

    def _answer(self, key: tuple[Any, ...], find: Any) -> Any:
        with self._lock:
            if key not in self._answers:
                found = find(Source(self._paths))
                while len(self._answers) >= _KEPT:
                    del self._answers[next(iter(self._answers))]
                self._answers[key] = found
            return self._answers[key]


def _counted(source: Source, window: Window) -> tuple[Contention, NDArray[Any]]:
    model = new_model(source, analysis.PATH)
    counts = np.zeros(_IDS, np.int64)
    for buffer in event_buffers(source, window):
        model.feed(buffer)
        counts += np.bincount(buffer.column("id"), minlength=_IDS)[:_IDS]
    ends = process_ends(source)
    if window.end_ns is not None:
        ends = [min(end, window.end_ns) for end in ends]
    model.finish(ends)
    return told_by(model, source, named=0), counts


def event_types(counts: NDArray[Any]) -> dict[str, int]:
    """Return numbers of events by the names of their types, most frequent first."""
    found: dict[str, int] = {}
    for number in np.flatnonzero(counts).tolist():
        name = BY_ID[number].name if number in BY_ID else f"EVENT_{number}"
        found[name] = found.get(name, 0) + int(counts[number])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def with_rows(
    found: Contention, by: str, limit: int, rows: Rows, totals: dict[str, int]
) -> protocol.Contention:
    """Return a report as a document, and the rows of what it lists.

    Args:
        found: The report.
        by: As `ptt report --by`.
        limit: How many objects, sites and pairs to list.
        rows: The rows of the timeline.
        totals: How many there are, where the report lists less.
    """
    document: Any = report_document(found, by=by)
    for name in ("objects", "sites", "pairs"):
        if name in document:
            document[name] = document[name][:limit]
    return {
        "report": document,
        "object_rows": [
            rows.object_row(o["pid"], o["object"], o["kind"]) for o in document["objects"]
        ],
        "thread_rows": [rows.thread_row(t["pid"], t["tid"]) for t in document["threads"]],
        "pair_rows": [
            [
                rows.thread_row(pair["pid"], pair["tid"]),
                rows.object_row(pair["pid"], pair["object"], pair["kind"]),
            ]
            for pair in document.get("pairs", [])
        ],
        "objects_total": totals.get("objects", len(found.objects)),
        "sites_total": totals.get("sites", len(found.sites)),
        "pairs_total": totals.get("pairs", len(found.pairs)),
    }


def used(tables: Tables) -> dict[str, int]:
    """Return how many objects and sites a report of everything has."""

    def busy(rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((rows["wait_n"].sum(axis=1) > 0) | (rows["hold_n"] > 0))

    rows_in_use = np.unique(tables.row_of[busy(tables.objects)])
    sites = busy(tables.sites) | (tables.sites["caused_ns"] > 0)
    return {
        "objects": int(np.count_nonzero(rows_in_use)),
        "sites": int(np.count_nonzero(sites[1:])),
    }
