"""What `ptt top` shows: lines of a screen or a printed snapshot, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nptltrace._units import duration, plural, seconds
from nptltrace.analysis.kinds import nothing_contended

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
        text: What it says.
        style: How to show it where there is colour: `head`, `alarm`, `faint` or empty.
    """

    text: str
    style: str = ""


def lines(found: LiveContention, *, name: str, by: str, top: int | None) -> Iterator[Line]:
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
    table: dict[str, Callable[[LiveContention, int | None], Iterator[Line]]] = {
        "object": _objects,
        "thread": _threads,
        "site": _sites,
    }
    yield from table[by](found, top)
    if not (found.objects, found.threads, found.sites)[list(_TITLES).index(by)]:
        is_whole = not (found.uncovered or found.unknown_ns)
        said = nothing_contended(given_up=found.given_up, is_whole=is_whole)
        yield Line(f"  {said}", "faint")


def _summary(found: LiveContention) -> Iterator[Line]:
    interval = found.now_ns - found.since_ns
    state = "" if found.running else ", the recording has ended"
    lost = f", {found.lost:,} {plural(found.lost, 'event')} lost" if found.lost else ""
    yield Line(f"  at {seconds(found.now_ns)}, the last {duration(interval)}{state}{lost}")
    waits = f"{found.figures.waits:,} {plural(found.figures.waits, 'wait')}"
    now = "1 thread waits" if found.waiting == 1 else f"{found.waiting:,} threads wait"
    yield Line(
        f"  contended: {duration(found.figures.wait_ns)}, {waits} ended; "
        f"{_mean(found.figures.wait_ns, found)} threads on average; now {now}"
    )
    if found.unknown_ns:
        unknown = duration(found.unknown_ns)
        yield Line(f"  not known what for: {unknown} at futexes and semaphores of no known lock")
    for item in found.uncovered:
        module = str(item.get("module", "?")).rpartition("/")[2]
        yield Line(_cut(f"  not covered: {module}: {item.get('why', '?')}", WIDTH))


def _head(what: str, width: int, *columns: tuple[str, int]) -> Line:
    text = f"{what:<{width}}" + "".join(f"{title:>{size}}" for title, size in columns)
    return Line(text, "head")


def _objects(found: LiveContention, top: int | None) -> Iterator[Line]:
    yield _head("objects", 30, ("now", 4), ("ended", 7), ("waited", 11), ("while held", 11),
                ("mean", 6), ("in all", 11))  # fmt: skip
    pids = len({item.pid for item in found.objects}) > 1
    for item in found.objects[:top]:
        sums = item.figures
        owner = f" of {item.pid}" if pids else ""
        label = _cut(f"{item.kind} {item.label}{owner}", 27)
        yield Line(
            f"  {label:<28}{_n(item.waiters):>4}{_n(sums.waits):>7}{_short(sums.wait_ns):>11}"
            f"{_short(sums.held_ns):>11}{_mean(sums.wait_ns, found):>6}"
            f"{_short(sums.total_wait_ns):>11}",
            "alarm" if item.waiters else "",
        )
        if item.waiters and item.holder:
            yield Line(_cut(_held(item), WIDTH), "faint")


def _held(item: LiveObject) -> str:
    holder = item.holder
    held_by = f"{holder.tid} {holder.name}".rstrip() if holder else "nobody"
    where = f" from {item.holder_site}" if item.holder_site else ""
    return f"      longest {duration(item.longest_ns)}; held by {held_by}{where}"


def _threads(found: LiveContention, top: int | None) -> Iterator[Line]:
    yield _head("threads", 30, ("holds", 6), ("waited", 11), ("idle", 11), ("caused", 11),
                ("in all", 11))  # fmt: skip
    for item in found.threads[:top]:
        label = _cut(f"{item.thread.tid} {item.thread.name}".rstrip(), 27)
        yield Line(
            f"  {label:<28}{_n(item.held):>6}{_short(item.figures.wait_ns):>11}"
            f"{_short(item.idle_ns):>11}{_short(item.caused_ns):>11}"
            f"{_short(item.figures.total_wait_ns):>11}",
            "alarm" if item.wanted and item.wanted.wait_class == "contended" else "",
        )
        if item.wanted:
            yield Line(_cut(f"      {_wants(item.wanted)}", WIDTH), "faint")


def _wants(wanted: LiveWait) -> str:
    what = "the end of a thread" if wanted.kind == "thread" else f"{wanted.kind} {wanted.label}"
    held = f", held by {wanted.owner}" if wanted.owner else ""
    known = {"idle": " (idle)", "unknown": " (not known what for)"}.get(wanted.wait_class, "")
    return f"waits {duration(wanted.dur_ns)} for {what}{held}{known}"


def _sites(found: LiveContention, top: int | None) -> Iterator[Line]:
    yield _head("call sites", 37, ("now", 5), ("ended", 8), ("waited", 10), ("caused", 10),
                ("in all", 10))  # fmt: skip
    for item in found.sites[:top]:
        yield Line(
            f"  {_cut(item.site, 34):<35}{_n(item.waiters):>5}{_n(item.figures.waits):>8}"
            f"{_short(item.figures.wait_ns):>10}{_short(item.caused_ns):>10}"
            f"{_short(item.figures.total_wait_ns):>10}",
            "alarm" if item.waiters else "",
        )


def _mean(ns: int, found: LiveContention) -> str:
    """Return how many threads waited at a time."""
    interval = found.now_ns - found.since_ns
    return f"{ns / interval:.2f}" if ns and interval > 0 else "-"


def _short(ns: int) -> str:
    return duration(ns) if ns else "-"


def _n(count: int) -> str:
    return f"{count:,}" if count else "-"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
