"""Labels of the samples of a pprof file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.profiling.interval import Row

__all__ = ["labels_of"]


def labels_of(row: Row) -> dict[str, str | int]:
    """Return the labels of a row. A text is empty if nothing is known."""
    owner = "" if row.owner_tid is None else row.owner_thread or str(row.owner_tid)
    return {
        "thread": row.thread or (str(row.tid) if row.tid else ""),
        "pid": row.pid,
        "lock": row.lock,
        "lock.owner_thread": owner,
        "lock.waiting_on": f"{row.kind} {row.lock}" if row.kind else "",
        "lock.holder": row.holder_frames[0].text if row.holder_frames else "",
        "class": row.wait_class,
    }
