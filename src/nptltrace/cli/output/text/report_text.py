"""The report as text: tables with a width of 80, and sentences as wide as the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import duration, plural, seconds
from nptltrace.analysis.objects import NO_LOCKS
from nptltrace.analysis.vocabulary.doing import DOING
from nptltrace.catalog import FUTEX_KINDS
from nptltrace.cli.options import columns
from nptltrace.cli.output.text import not_covered
from nptltrace.cli.output.text.table import Table, cut, duration_or_dash, many, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.analysis.report.critical_path import CriticalPath
    from nptltrace.analysis.report.figures import (
        Blame,
        Cause,
        Contention,
        Figures,
        Inside,
        ObjectFigures,
        OpenWait,
        PairFigures,
        SiteFigures,
        ThreadFigures,
    )
    from nptltrace.analysis.report.naming import ThreadName
    from nptltrace.analysis.report.stacks.both_sides import BothStacks

__all__ = ["lines"]

# Classes of waits that go on in a program without work.
_STILL = {"idle": "for work at the end", "unknown": "at the end, not known what for"}
_SHOWN = 3  # holders, wakers and causes of one row
_LABEL = 33  # columns
_PARTS, _LEAST = 4, 0.005  # what holders did: number of parts, and the least share
_CLASSES = {
    "idle": "idle", "join": "joining", "timeout": "timed out", "cancelled": "given up",
    "unknown": "not known what for", "gil": "for the GIL of Python",
}  # fmt: skip
_CAUSED = {
    "barrier": "until {} came, at {}",
    **dict.fromkeys(FUTEX_KINDS, "until {} woke it at {}"),
}


def lines(
    contention: Contention, *, name: str, by: str, top: int | None, part: bool = False
) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        contention: The report.
        name: The traces.
        by: The table to show: the value of `--by`.
        top: Number of rows; None for all.
        part: The report counts only some threads, objects or call sites.
    """
    yield cut(name, columns())
    yield from _summary(contention)
    yield from _never_ended(contention)
    if by == "object":
        yield from _threads(contention.threads, top, causes=False)
        yield from _objects(contention, top)
    elif by == "thread":
        yield from _threads(contention.threads, top, causes=True)
    elif by == "site":
        yield from _sites(contention.sites, top)
    else:
        yield from _pairs(contention.pairs, top)
    yield from _path(contention.path, part=part)


def _summary(contention: Contention) -> Iterator[str]:
    figures = contention.figures
    contended = f"contended for {duration(figures.wait_ns)} in {many(figures.waits, 'wait')}"
    yield (
        f"  {duration(contention.elapsed_ns)}, {many(len(contention.threads), 'thread')}; "
        f"{contention.uncontended or contended}"
    )
    if figures.is_mostly_wake:
        wake = f"{duration(figures.wake_ns)} of that went by after the lock was free"
        yield from wrap(f"mostly until awake: {wake}, before the waiting threads ran", "  ")
    parts = _others(figures, but="unknown")
    if parts:
        yield from wrap(f"not contention: {', '.join(parts)}", "  ")
    if figures.other_ns["gil"]:
        yield "  which thread had the GIL at which line: ptt report --gil"
    waits, wait_ns = figures.other_waits["unknown"], figures.other_ns["unknown"]
    for sentence in not_covered.unknown(waits, wait_ns):
        yield from wrap(f"not known: {sentence}", "  ")
    for sentence in not_covered.modules(contention.uncovered):
        yield from wrap(f"not covered: {sentence}", "  ")
    for sentence in not_covered.silent(contention.silent_threads):
        yield from wrap(f"not covered: {sentence}", "  ")
    if contention.lost:
        were = plural(contention.lost, "event was", "events were")
        yield f"  {contention.lost:,} {were} lost: what follows is incomplete"


def _others(figures: Figures, *, but: str = "") -> list[str]:
    return [
        f"{_CLASSES[name]} {duration(ns)} ({figures.other_waits[name]:,})"
        for name, ns in figures.other_ns.items()
        if figures.other_waits[name] and name != but
    ]


# ---- waits that never ended ----


def _never_ended(contention: Contention) -> Iterator[str]:
    in_cycle = {id(wait) for cycle in contention.deadlocks for wait in cycle}
    for cycle in contention.deadlocks:
        yield ""
        text = f"DEADLOCK: {cycle[0].thread} waits for {_thing(cycle[0])}"
        for wait in cycle[1:]:
            text += f"{_held_by(wait.thread, cycle)}, which waits for {_thing(wait)}"
        yield from wrap(text + _held_by(cycle[0].thread, cycle), "", "  ")
        for wait in cycle:
            yield from _open(wait)
    rest = [wait for wait in contention.open_waits if id(wait) not in in_cycle]
    stuck = [wait for wait in rest if wait.wait_class not in _STILL]
    if stuck:
        yield ""
        yield "still waiting at the end of the trace"
        for wait in stuck:
            yield from _open(wait)
    for wait_class, what in _STILL.items():
        yield from _still_waiting([wait for wait in rest if wait.wait_class == wait_class], what)


def _still_waiting(waits: list[OpenWait], what: str) -> Iterator[str]:
    """Yield some of the waits of threads that may have no work."""
    if not waits:
        return
    yield ""
    many = "1 thread was" if len(waits) == 1 else f"{len(waits):,} threads were"
    yield f"{many} still waiting {what}"
    for wait in waits[:_SHOWN]:
        text = f"{wait.thread} for {_thing(wait)} since {seconds(wait.t_ns)}"
        yield from wrap(text + (f" at {wait.site}" if wait.site else ""), "  ")
    if len(waits) > _SHOWN:
        yield f"  and {len(waits) - _SHOWN:,} more"


def _held_by(thread: ThreadName, cycle: Sequence[OpenWait]) -> str:
    """Return `, held by THREAD` if another wait of the cycle waits for a lock of the thread."""
    before = next((wait for wait in cycle if wait.owner == thread), None)
    return "" if before is None or before.kind == "thread" else f", held by {thread}"


def _thing(wait: OpenWait) -> str:
    if wait.kind == "thread":
        return f"the end of {wait.owner}" if wait.owner else "the end of a thread"
    return f"{wait.kind} {wait.label}"


def _open(wait: OpenWait) -> Iterator[str]:
    since = f"{wait.thread} waits since {seconds(wait.t_ns)} ({duration(wait.dur_ns)})"
    yield from wrap(f"{since} for {_thing(wait)}", "  ")
    if wait.site:
        yield from wrap(f"at {wait.site}", "      ")
    if wait.owner and wait.kind != "thread":
        where = f", taken at {wait.owner_site}" if wait.owner_site else ""
        yield from wrap(f"held by {wait.owner}{where}", "      ")


# ---- tables ----


def _threads(threads: list[ThreadFigures], top: int | None, *, causes: bool) -> Iterator[str]:
    yield ""
    heads = {"lived": 10, "not waiting": 13, "contended": 12, "idle": 11, "joining": 11}
    if any(thread.figures.other_ns["gil"] for thread in threads):
        heads["the GIL"] = 11
    table = Table("threads", 23, heads)
    yield table.head
    order = sorted(threads, key=lambda t: (-t.figures.wait_ns, -t.figures.blocked_ns))
    # The threads that waited longest, in the order of their begin.
    shown = {id(thread) for thread in order[:top]}
    for thread in threads:
        if id(thread) not in shown:
            continue
        figures = thread.figures
        other = figures.other_ns
        times = (
            thread.life_ns, thread.running_ns, figures.wait_ns, other["idle"], other["join"],
            other["gil"],
        )  # fmt: skip
        label = f"{thread.thread.tid} {thread.thread.name}"
        yield table.row(label, *map(duration_or_dash, times))
        if causes:
            yield from _processor(thread)
            for cause in thread.causes[:_SHOWN]:
                yield from wrap(_because(cause), "      ")
            yield from _stacks(thread.stacks)
    more = len(threads) - len(shown)
    if more:
        yield f"  {more:,} more (-n 0 shows all)"


def _processor(thread: ThreadFigures) -> Iterator[str]:
    """Yield a line about the time on processors, if it is known."""
    if thread.cpu_ns is None:
        return
    text = f"on a processor for {duration(thread.cpu_ns)}"
    if thread.ready_ns is not None:
        text += f", ready to run for {duration(thread.ready_ns)}"
    yield from wrap(text, "      ")


def _because(cause: Cause) -> str:
    what = "the end of a thread" if cause.kind == "thread" else f"{cause.kind} {cause.label}"
    if cause.kind == "thread" and cause.thread:
        what = f"the end of {cause.thread}"
    text = f"{duration(cause.wait_ns)} for {what}"
    text += f" at {cause.site}" if cause.site else ""
    text += "" if cause.wait_class == "contended" else f" ({_CLASSES[cause.wait_class]})"
    if cause.thread is None or cause.kind == "thread":
        return text
    how = "ended by" if cause.kind in NO_LOCKS else "taken by"
    if cause.kind == "semaphore" and cause.wait_class == "contended":  # a lock or a pool
        how = "because of"
    where = f" at {cause.thread_site}" if cause.thread_site else ""
    return f"{text}, {how} {cause.thread}{where}"


def _waits_of(title: str) -> Table:
    return Table(title, _LABEL + 3, {"waits": 8, "total": 12, "longest": 12, "p99": 12})


def _row(label: str, figures: Figures) -> Iterator[str]:
    times = (figures.wait_ns, figures.wait_max_ns, figures.wait_p99_ns or 0)
    if len(label) > _LABEL:
        yield f"  {cut(label, 76)}"
        label = ""
    yield _waits_of("").row(label, f"{figures.waits:,}", *map(duration_or_dash, times))


def _objects(contention: Contention, top: int | None) -> Iterator[str]:
    objects = contention.objects
    if not objects:
        return
    yield ""
    yield _waits_of("objects: contended waits").head
    pids = len({item.pid for item in objects}) > 1
    # There may be hundreds of objects without waits, which say nothing about waiting.
    shown = objects if top is None else objects[: min(top, contention.waited_objects)]
    for item in shown:
        owner = f" of {item.pid}" if pids else ""
        yield from _row(f"{item.kind} {item.label}{owner}", item.figures)
        yield from wrap(_facts(item), "      ")
        for blame in item.blamed[:_SHOWN]:
            yield from wrap(f"{duration(blame.wait_caused_ns)} {_caused(blame, item)}", "    > ")
        if item.blamed and item.inside:
            yield from wrap(f"the holders: {_did(item.inside)}", "    | ")
        if not item.blamed:
            for blame in item.wakers[:_SHOWN]:
                where = f" at {blame.site}" if blame.site else ""
                yield from wrap(f"{blame.count:,} ended by {blame.thread}{where}", "    < ")
        yield from _stacks(item.stacks)
    yield from _left_out(contention, len(shown))


def _left_out(contention: Contention, shown: int) -> Iterator[str]:
    """Yield a line about the objects that are not shown."""
    quiet = contention.all_objects - contention.waited_objects
    parts = []
    if contention.waited_objects > shown:
        parts.append(f"{contention.waited_objects - shown:,} more")
    if quiet:
        parts.append(f"{many(quiet, 'object')} that nobody waited for")
    if parts and shown < contention.all_objects:
        yield f"  {' and '.join(parts)} (-n 0 shows all)"


def _caused(blame: Blame, item: ObjectFigures) -> str:
    if blame.thread is None:
        return "for which nobody is known"
    site = blame.site or "an unknown place"
    held = f"while {{}} held it, {'released' if blame.released else 'taken'} at {{}}"
    if item.kind == "semaphore" and not item.figures.holds:  # a pool
        held = "until {} gave one back at {}"
    return _CAUSED.get(item.kind, held).format(blame.thread, site)


def _did(inside: list[Inside]) -> str:
    """Return what holders did while others waited, in per cent."""
    parts = [_part(part) for part in inside[:_PARTS] if part.share >= _LEAST]
    rest = 1 - sum(part.share for part in inside[: len(parts)])
    return ", ".join([*parts, *([f"{rest:.0%} other"] if rest >= _LEAST else [])])


def _part(part: Inside) -> str:
    where = f" at {part.site}" if part.site else ""
    call = f" in {part.call}" if part.call else ""
    if part.wanted is not None:
        what = f"waiting for {part.wanted.kind} {part.wanted.label}"
        if part.wanted.kind == "thread":
            what = "waiting for the end of a thread"
    else:
        what = DOING[part.what] + call
    return f"{part.share:.0%} {what}{where}"


def _facts(item: ObjectFigures) -> str:
    figures = item.figures
    parts = []
    if not item.name and item.init_site:
        parts.append(f"initialized at {item.init_site}")
    if not item.name and item.first_site and item.first_site != item.init_site:
        parts.append(f"first used at {item.first_site}")
    if figures.holds:
        parts.append(_held(figures))
    if figures.waits:
        parts.append(_divided(item))
    parts.append(f"used by {many(item.threads, 'thread')}")
    if item.max_waiters > 1:
        parts.append(f"up to {item.max_waiters} waiting")
    if item.generations > 1:
        parts.append(f"{item.generations:,} objects at this address")
    return ", ".join([*parts, *_others(figures)])


def _divided(item: ObjectFigures) -> str:
    """Return the two parts of the waiting: while held, and until awake."""
    held, wake = duration(item.figures.held_ns), duration(item.figures.wake_ns)
    if item.kind in FUTEX_KINDS:  # the holder is unknown: the waker counts as the holder
        return f"{held} waited until it was woken, {wake} until awake; holders are inferred"
    if item.kind == "java-monitor":  # the virtual machine does not report the end of a hold
        return f"{held} waited, with the time until awake"
    until = "while it was held"
    if item.kind == "barrier":
        until = "until the last thread came"
    elif item.kind == "once":
        until = "while its routine ran"
    elif item.kind == "semaphore" and not item.figures.holds:  # a pool
        until = "until one was given back"
    return f"{held} waited {until}, {wake} until awake"


def _held(figures: Figures) -> str:
    total, longest = duration(figures.hold_ns), duration(figures.hold_max_ns)
    return f"held {many(figures.holds, 'time')} for {total}, at most {longest}"


def _sites(sites: list[SiteFigures], top: int | None) -> Iterator[str]:
    yield ""
    yield _waits_of("call sites: contended waits").head
    pids = len({item.pid for item in sites}) > 1
    for item in sites[:top]:
        owner = f" of {item.pid}" if pids else ""
        yield from _row(f"{item.kind}{owner}", item.figures)
        yield from wrap(f"at {item.site}", "      ")
        parts = []
        if item.wait_caused_ns:
            parts.append(f"others waited {duration(item.wait_caused_ns)} because of it")
        if item.figures.holds:
            parts.append(_held(item.figures))
        parts += _others(item.figures)
        if parts:
            yield from wrap(", ".join(parts), "      ")
        yield from _stacks(item.stacks)


def _pairs(pairs: list[PairFigures], top: int | None) -> Iterator[str]:
    yield ""
    heads = {"waits": 8, "total": 11, "held": 11, "caused": 11}
    table = Table("threads and objects", 39, heads)
    yield table.head
    for item in pairs[:top]:
        label = f"{item.thread.tid} {item.thread.name}".rstrip()
        times = (item.figures.wait_ns, item.figures.hold_ns, item.wait_caused_ns)
        label = f"{label}, {item.kind} {item.label}"
        yield table.row(label, f"{item.figures.waits:,}", *map(duration_or_dash, times))
        rest = _others(item.figures)
        if rest:
            yield from wrap(", ".join(rest), "      ")
        yield from _stacks(item.stacks)


def _stacks(stacks: list[BothStacks]) -> Iterator[str]:
    """Yield the call stacks of an entry's waits, longest waits first."""
    for both in stacks[:_SHOWN]:
        yield f"      {many(both.waits, 'wait')}, {duration(both.wait_ns)}"
        yield from _frames("waited", both.waiter)
        yield from _frames("released" if both.released else "held", both.holder)
    rest = stacks[_SHOWN:]
    if rest:
        ns, waits = sum(both.wait_ns for both in rest), sum(both.waits for both in rest)
        yield f"      {many(waits, 'wait')}, {duration(ns)}, with {len(rest):,} other stacks"


def _frames(what: str, frames: tuple[str, ...]) -> Iterator[str]:
    for what_of, frame in zip((what, *[""] * len(frames)), frames or ("[unknown]",), strict=False):
        yield from wrap(f"{what_of:<8} {frame}", "        ", " " * 19)


def _path(path: CriticalPath, *, part: bool) -> Iterator[str]:
    total = path.end_ns - path.start_ns
    if not path.threads or not total:
        return
    yield ""
    whole = " of the whole, whatever was chosen" if part else ""
    yield f"critical path{whole}: {duration(total)}, and the threads it leads along"
    for item in path.threads[:5]:
        share = 100 * (item.run_ns + item.latency_ns + item.open_ns) / total
        text = f"{share:5.1f}%  {item.thread}: {duration(item.run_ns)} not waiting"
        text += f", {duration(item.latency_ns)} until it was awake" if item.latency_ns else ""
        text += f" ({duration(item.ready_ns)} through the run queue)" if item.ready_ns else ""
        text += f", {duration(item.open_ns)} waiting" if item.open_ns else ""
        yield from wrap(text, "  ", "          ")
    through = [f"{link.kind} {link.label} ({link.count:,})" for link in path.links[:_SHOWN]]
    through = [text for text in through if not text.startswith("thread ")]
    if through:
        yield from wrap(f"from thread to thread through {', '.join(through)}", "  ", "      ")
    if path.resolution_ns:
        yield f"  waits below {duration(path.resolution_ns)} are left out of it"
