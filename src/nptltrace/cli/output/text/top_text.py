"""A snapshot of `ptt top` as lines of text with a width of 80."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._units import duration, seconds
from nptltrace.analysis.objects import nothing_contended
from nptltrace.cli.output.text.table import Table, count_or_dash, cut, duration_or_dash, many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace.analysis.report.live_contention import (
        LiveContention,
        LiveObject,
        LiveWait,
    )

__all__ = ["Line", "lines"]

WIDTH = 80
_TITLES = {"object": "objects", "thread": "threads", "site": "call sites"}


class Line(NamedTuple):
    """A line of text.

    Attributes:
        text: The text.
        style: The style on a terminal: `head`, `alarm`, `faint` or empty.
    """

    text: str
    style: str = ""


def lines(snapshot: LiveContention, *, name: str, by: str, top: int | None) -> Iterator[Line]:
    """Yield the lines of a snapshot.

    Args:
        snapshot: The snapshot.
        name: The traces.
        by: `object`, `thread` or `site`.
        top: Number of rows; None for all.
    """
    yield Line(cut(name, WIDTH))
    yield from _summary(snapshot)
    yield Line("")
    table: dict[str, Callable[[LiveContention, int | None], Iterator[Line]]] = {
        "object": _objects,
        "thread": _threads,
        "site": _sites,
    }
    yield from table[by](snapshot, top)
    if not (snapshot.objects, snapshot.threads, snapshot.sites)[list(_TITLES).index(by)]:
        is_whole = not (snapshot.uncovered or snapshot.unknown_ns)
        said = nothing_contended(given_up=snapshot.given_up, is_whole=is_whole)
        yield Line(f"  {said}", "faint")


def _summary(snapshot: LiveContention) -> Iterator[Line]:
    interval = snapshot.now_ns - snapshot.since_ns
    state = "" if snapshot.running else ", the recording has ended"
    lost = f", {many(snapshot.lost, 'event')} lost" if snapshot.lost else ""
    yield Line(f"  at {seconds(snapshot.now_ns)}, the last {duration(interval)}{state}{lost}")
    waits = many(snapshot.figures.waits, "wait")
    now = "1 thread waits" if snapshot.waiting == 1 else f"{snapshot.waiting:,} threads wait"
    yield Line(
        f"  contended: {duration(snapshot.figures.wait_ns)}, {waits} ended; "
        f"{_mean(snapshot.figures.wait_ns, snapshot)} threads on average; now {now}"
    )
    if snapshot.unknown_ns:
        unknown = duration(snapshot.unknown_ns)
        yield Line(f"  not known what for: {unknown} at futexes and semaphores of no known lock")
    for item in snapshot.uncovered:
        module = str(item.get("module", "?")).rpartition("/")[2]
        yield Line(cut(f"  not covered: {module}: {item.get('why', '?')}", WIDTH))


def _objects(snapshot: LiveContention, top: int | None) -> Iterator[Line]:
    heads = {"now": 4, "ended": 7, "waited": 11, "while held": 11, "mean": 6, "in all": 11}
    table = Table("objects", 30, heads)
    yield Line(table.head, "head")
    pids = len({item.pid for item in snapshot.objects}) > 1
    for item in snapshot.objects[:top]:
        sums = item.figures
        owner = f" of {item.pid}" if pids else ""
        text = table.row(
            f"{item.kind} {item.label}{owner}", count_or_dash(item.waiters),
            count_or_dash(sums.waits), duration_or_dash(sums.wait_ns),
            duration_or_dash(sums.held_ns), _mean(sums.wait_ns, snapshot),
            duration_or_dash(sums.total_wait_ns),
        )  # fmt: skip
        yield Line(text, "alarm" if item.waiters else "")
        if item.waiters and item.holder:
            yield Line(cut(_held(item), WIDTH), "faint")


def _held(item: LiveObject) -> str:
    holder = item.holder
    held_by = f"{holder.tid} {holder.name}".rstrip() if holder else "nobody"
    where = f" from {item.holder_site}" if item.holder_site else ""
    return f"      longest {duration(item.longest_ns)}; held by {held_by}{where}"


def _threads(snapshot: LiveContention, top: int | None) -> Iterator[Line]:
    heads = {"holds": 6, "waited": 11, "idle": 11, "caused": 11, "in all": 11}
    table = Table("threads", 30, heads)
    yield Line(table.head, "head")
    for item in snapshot.threads[:top]:
        times = (item.figures.wait_ns, item.idle_ns, item.caused_ns, item.figures.total_wait_ns)
        text = table.row(
            f"{item.thread.tid} {item.thread.name}".rstrip(), count_or_dash(item.held),
            *map(duration_or_dash, times),
        )  # fmt: skip
        alarm = item.wanted and item.wanted.wait_class == "contended"
        yield Line(text, "alarm" if alarm else "")
        if item.wanted:
            yield Line(cut(f"      {_wants(item.wanted)}", WIDTH), "faint")


def _wants(wanted: LiveWait) -> str:
    what = "the end of a thread" if wanted.kind == "thread" else f"{wanted.kind} {wanted.label}"
    held = f", held by {wanted.owner}" if wanted.owner else ""
    known = {"idle": " (idle)", "unknown": " (not known what for)"}.get(wanted.wait_class, "")
    return f"waits {duration(wanted.dur_ns)} for {what}{held}{known}"


def _sites(snapshot: LiveContention, top: int | None) -> Iterator[Line]:
    table = Table(
        "call sites", 37, {"now": 5, "ended": 8, "waited": 10, "caused": 10, "in all": 10}
    )
    yield Line(table.head, "head")
    for item in snapshot.sites[:top]:
        times = (item.figures.wait_ns, item.caused_ns, item.figures.total_wait_ns)
        text = table.row(
            item.site, count_or_dash(item.waiters), count_or_dash(item.figures.waits),
            *map(duration_or_dash, times),
        )  # fmt: skip
        yield Line(text, "alarm" if item.waiters else "")


def _mean(ns: int, snapshot: LiveContention) -> str:
    """Return the number of threads that waited, on average over the interval."""
    interval = snapshot.now_ns - snapshot.since_ns
    return f"{ns / interval:.2f}" if ns and interval > 0 else "-"
