"""What `ptt top` shows: lines of a screen or a printed snapshot, 80 columns wide, and data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace.cli.commands.stat import duration, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.analysis.report.live_contention import (
        NowObject,
        NowSite,
        NowThread,
        Present,
        Wanted,
    )
    from nptltrace.analysis.report.naming import ThreadName

__all__ = ["COLUMNS", "Line", "as_json", "as_rows", "lines"]

WIDTH = 80
_TITLES = {"object": "objects", "thread": "threads", "site": "call sites"}


class Line(NamedTuple):
    """A line of text.

    Attributes:
        text: What it says.
        style: How to show it where there is colour: `head`, `alarm`, `faint` or empty.
    """

    text: str
    style: str = ""


def lines(found: Present, *, name: str, by: str, top: int | None) -> Iterator[Line]:
    """Yield the lines of a snapshot.

    Args:
        found: What there is to say.
        name: What it is about.
        by: `object`, `thread` or `site`.
        top: How many rows, or None for all.
    """
    yield Line(_cut(name, WIDTH))
    yield from _summary(found)
    yield Line("")
    table: dict[str, Callable[[Present, int | None], Iterator[Line]]] = {
        "object": _objects,
        "thread": _threads,
        "site": _sites,
    }
    yield from table[by](found, top)
    if not (found.objects, found.threads, found.sites)[list(_TITLES).index(by)]:
        yield Line("  nothing was contended yet", "faint")


def _summary(found: Present) -> Iterator[Line]:
    stretch = found.now_ns - found.since_ns
    state = "" if found.running else ", the recording has ended"
    lost = f", {found.lost:,} events lost" if found.lost else ""
    yield Line(f"  at {seconds(found.now_ns)}, the last {duration(stretch)}{state}{lost}")
    waits = "1 wait" if found.waits == 1 else f"{found.waits:,} waits"
    now = "1 thread waits" if found.waiting == 1 else f"{found.waiting:,} threads wait"
    yield Line(
        f"  contended: {duration(found.wait_ns)}, {waits} ended; "
        f"{_mean(found.wait_ns, found)} threads on average; now {now}"
    )


def _head(what: str, width: int, *columns: tuple[str, int]) -> Line:
    text = f"{what:<{width}}" + "".join(f"{title:>{size}}" for title, size in columns)
    return Line(text, "head")


def _objects(found: Present, top: int | None) -> Iterator[Line]:
    yield _head("objects", 30, ("now", 5), ("ended", 9), ("waited", 11), ("mean", 8),
                ("in all", 17))  # fmt: skip
    pids = len({item.pid for item in found.objects}) > 1
    for item in found.objects[:top]:
        owner = f" of {item.pid}" if pids else ""
        label = _cut(f"{item.kind} {item.label}{owner}", 27)
        yield Line(
            f"  {label:<28}{_n(item.waiters):>5}{_n(item.waits):>9}{_short(item.wait_ns):>11}"
            f"{_mean(item.wait_ns, found):>8}{_short(item.total_wait_ns):>17}",
            "alarm" if item.waiters else "",
        )
        if item.waiters and item.holder:
            yield Line(_cut(_held(item), WIDTH), "faint")


def _held(item: NowObject) -> str:
    holder = item.holder
    who = f"{holder.tid} {holder.name}".rstrip() if holder else "nobody"
    where = f" from {item.holder_site}" if item.holder_site else ""
    return f"      longest {duration(item.longest_ns)}; held by {who}{where}"


def _threads(found: Present, top: int | None) -> Iterator[Line]:
    yield _head("threads", 30, ("holds", 6), ("waited", 11), ("idle", 11), ("caused", 11),
                ("in all", 11))  # fmt: skip
    for item in found.threads[:top]:
        label = _cut(f"{item.thread.tid} {item.thread.name}".rstrip(), 27)
        yield Line(
            f"  {label:<28}{_n(item.held):>6}{_short(item.wait_ns):>11}"
            f"{_short(item.idle_ns):>11}{_short(item.caused_ns):>11}"
            f"{_short(item.total_wait_ns):>11}",
            "alarm" if item.wanted and item.wanted.wait_class == "contended" else "",
        )
        if item.wanted:
            yield Line(_cut(f"      {_wants(item.wanted)}", WIDTH), "faint")


def _wants(wanted: Wanted) -> str:
    what = "the end of a thread" if wanted.kind == "thread" else f"{wanted.kind} {wanted.label}"
    held = f", held by {wanted.holder}" if wanted.holder else ""
    idle = " (idle)" if wanted.wait_class == "idle" else ""
    return f"waits {duration(wanted.dur_ns)} for {what}{held}{idle}"


def _sites(found: Present, top: int | None) -> Iterator[Line]:
    yield _head("call sites", 37, ("now", 5), ("ended", 8), ("waited", 10), ("caused", 10),
                ("in all", 10))  # fmt: skip
    for item in found.sites[:top]:
        yield Line(
            f"  {_cut(item.site, 34):<35}{_n(item.waiters):>5}{_n(item.waits):>8}"
            f"{_short(item.wait_ns):>10}{_short(item.caused_ns):>10}"
            f"{_short(item.total_wait_ns):>10}",
            "alarm" if item.waiters else "",
        )


def _mean(ns: int, found: Present) -> str:
    """Return how many threads waited at a time."""
    stretch = found.now_ns - found.since_ns
    return f"{ns / stretch:.2f}" if ns and stretch > 0 else "-"


def _short(ns: int) -> str:
    return duration(ns) if ns else "-"


def _n(count: int) -> str:
    return f"{count:,}" if count else "-"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


# ---- data ----

COLUMNS = {
    "object": ["object", "pid", "kind", "name", "waiters", "holder_tid", "holder_site",
               "longest_ns", "waits", "wait_ns", "total_waits", "total_wait_ns"],
    "thread": ["tid", "pid", "name", "waits_for", "waits_for_kind", "class", "since_ns",
               "waiting_ns", "site", "holder_tid", "held", "waits", "wait_ns", "idle_ns",
               "wait_caused_ns", "total_wait_ns"],
    "site": ["site", "pid", "kind", "waiters", "waits", "wait_ns", "wait_caused_ns",
             "total_wait_ns"],
}  # fmt: skip


def as_json(found: Present) -> dict[str, Any]:
    """Return the document of `--format json`."""
    return {
        "ts_ns": found.now_ns,
        "since_ns": found.since_ns,
        "running": found.running,
        "lost": found.lost,
        "waiting": found.waiting,
        "waits": found.waits,
        "wait_ns": found.wait_ns,
        "objects": [_object(item) for item in found.objects],
        "threads": [_thread(item) for item in found.threads],
        "sites": [_site(item) for item in found.sites],
    }


def as_rows(found: Present, *, by: str, top: int | None) -> Iterator[list[Any]]:
    """Yield the rows of `--format csv`, each with the time of its snapshot first."""
    rows = {
        "object": lambda: [_object(item) for item in found.objects[:top]],
        "thread": lambda: [_thread(item) for item in found.threads[:top]],
        "site": lambda: [_site(item) for item in found.sites[:top]],
    }[by]()
    for row in rows:
        yield [found.now_ns, *(row[column] for column in COLUMNS[by])]


def _tid(thread: ThreadName | None) -> int | None:
    return None if thread is None else thread.tid


def _object(item: NowObject) -> dict[str, Any]:
    address = f"{item.address:#x}"
    return {
        "object": address,
        "pid": item.pid,
        "kind": item.kind,
        "name": "" if item.label == address else item.label,
        "waiters": item.waiters,
        "holder_tid": _tid(item.holder),
        "holder_site": item.holder_site,
        "longest_ns": item.longest_ns,
        "waits": item.waits,
        "wait_ns": item.wait_ns,
        "total_waits": item.total_waits,
        "total_wait_ns": item.total_wait_ns,
    }


def _thread(item: NowThread) -> dict[str, Any]:
    wanted = item.wanted
    return {
        "tid": item.thread.tid,
        "pid": item.thread.pid,
        "name": item.thread.name,
        "waits_for": wanted.label if wanted else None,
        "waits_for_kind": wanted.kind if wanted else None,
        "class": wanted.wait_class if wanted else None,
        "since_ns": wanted.since_ns if wanted else None,
        "waiting_ns": wanted.dur_ns if wanted else None,
        "site": wanted.site if wanted else None,
        "holder_tid": _tid(wanted.holder) if wanted else None,
        "held": item.held,
        "waits": item.waits,
        "wait_ns": item.wait_ns,
        "idle_ns": item.idle_ns,
        "wait_caused_ns": item.caused_ns,
        "total_wait_ns": item.total_wait_ns,
    }


def _site(item: NowSite) -> dict[str, Any]:
    return {
        "site": item.site,
        "pid": item.pid,
        "kind": item.kind,
        "waiters": item.waiters,
        "waits": item.waits,
        "wait_ns": item.wait_ns,
        "wait_caused_ns": item.caused_ns,
        "total_wait_ns": item.total_wait_ns,
    }
