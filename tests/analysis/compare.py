"""Compares the native model with the reference, row by row."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from nptltrace._binding import libptttrack_sums
from nptltrace.analysis.model import Window, model_tables, run_model
from nptltrace.api import Traceset
from tests.analysis.reference import follow
from tests.analysis.state import End
from tests.analysis.text_events import read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.analysis.reference import Reference


ROUNDED = 64


def reference_of(trace: Path, source: Traceset, window: Window) -> Reference:
    """Run the reference over a trace; blame threads for waits in a window of it."""
    clock = source.traces[0].metadata.clock
    processes = source.processes
    sites = {p.index: p.sites for p in processes}
    ends = {
        p.index: End(*times)
        for p, *times in zip(processes, source.killed_ns(), source.ended_ns(), strict=True)
    }
    images: dict[int, int] = {}
    for process in processes:
        images.setdefault(process.pid, process.index)
    events = read(trace, source.ticks_at_start(), clock.frequency, sites, images)
    return follow(events, ends, *_limits(window))


def _limits(window: Window) -> tuple[int, int]:
    begin, end = window.begin_ns, window.end_ns
    return -(2**62) if begin is None else begin, 2**62 if end is None else end


def cut(window: Window, since: int, until: int | None) -> tuple[int, int | None] | None:
    """Return begin and length of the part of an interval in a window, or None if there is none."""
    begin, end = _limits(window)
    if since >= end or (until is not None and until <= begin and since < begin):
        return None
    first = max(since, begin)
    return first, None if until is None else min(until, end) - first


def assert_equal(model: Counter[Any], reference: Counter[Any]) -> None:
    """Fail with all rows that only the model or only the reference has."""
    only_model = sorted((model - reference).elements(), key=str)
    only_reference = sorted((reference - model).elements(), key=str)
    message = f"only the model: {only_model}, only the reference: {only_reference}"
    assert only_model == only_reference, message


def assert_same(trace: Path, window: Window | None = None) -> dict[str, int]:
    """Compare the model with the reference; return the number of waits of each class.

    Args:
        trace: The trace; it has one process if you compare only a window.
        window: The part of the trace to compare.
    """
    window = window or Window()
    source = Traceset(trace)
    reference = reference_of(trace, source, window)
    tables = model_tables(source, window=window)
    index = [p.index for p in source.processes]
    numbers, kinds = (tables.objects[name].to_pylist() for name in ("lock_id", "kind"))
    kind_of = dict(zip(numbers, kinds, strict=True))
    rows = [(r, cut(window, r.t_ns, r.t_ns + r.dur_ns)) for r in reference.rows]
    # The model divides a time that several readers held among them, in whole ns.
    readers = {
        (r.process, r.tid, r.address, part[0]): r.held or 0
        for r, part in rows
        if r.kind == "rwlock" and part
    }
    # The first holder after the signal is then forgotten.
    vague = {(r.process, r.tid, r.address, part[0]) for r, part in rows if r.vague and part}
    waits: Counter[Any] = Counter()
    for row in tables.waits.to_pylist():
        place = (index[row["process"]], row["tid"], row["object"], row["t_ns"])
        owner = None if place in vague else (row["owner_tid"] or 0, row["owner_site"])
        held = row["held_ns"]
        if place in readers and held is not None:
            held = readers[place] if abs(readers[place] - held) <= ROUNDED else held
        waits[
            index[row["process"]], row["tid"], row["kind"], row["object"], row["t_ns"],
            row["dur_ns"], row["class"], row["result"], row["open"], row["queue_depth"],
            owner, (row["waker_tid"] or 0, row["waker_site"]),
            row["waker_t_ns"], row["site"], held,
        ] += 1  # fmt: skip
    expected = Counter(
        (r.process, r.tid, r.kind, r.address, *part, r.wait_class, r.result, r.open,
         r.depth, None if r.vague else r.waited_for, r.waker, r.wake_ns, r.site,
         r.held)
        for r, part in rows
        if part
    )  # fmt: skip
    assert_equal(waits, expected)
    holds: Counter[Any] = Counter(
        (index[row["process"]], row["tid"], kind_of[row["lock_id"]], row["object"],
         row["t_ns"], None if row["open"] else row["dur_ns"], row["mode"], row["site"],
         row["release_site"])
        for row in tables.holds.to_pylist()
    )  # fmt: skip
    expected_holds = Counter(
        (h.process, h.tid, o.kind, o.address, *part, h.mode, h.site, h.release_site)
        for o, h in reference.holds
        if (part := cut(window, h.since, h.until))
    )  # fmt: skip
    assert_equal(holds, expected_holds)
    woken: Counter[Any] = Counter(
        (row["wakee_tid"], row["object"], row["t_ns"], row["waker_tid"])
        for row in tables.wakeups.to_pylist()
    )
    begin, end = _limits(window)
    expected_woken = Counter(
        (r.tid, r.address, ts, r.waker[0])
        for r in reference.rows
        if r.waker[0] and r.wake_ns is not None and begin <= (ts := max(r.wake_ns, r.t_ns)) < end
    )
    assert_equal(woken, expected_woken)
    assert_blame(source, reference, window)
    classes: dict[str, int] = {}
    for r in reference.rows:
        classes[r.wait_class] = classes.get(r.wait_class, 0) + 1
    return classes


def assert_blame(source: Traceset, reference: Reference, window: Window) -> None:
    """Compare the blame of holders; the model may cut each share to whole ns."""
    roundings = len(reference.rows) + len(reference.holds)
    model = run_model(source, window=window)
    threads, objects = model.table("threads"), model.table("objects")
    sites = model.table("sites")["address"]
    blamed: dict[Any, int] = {}
    for row in model.table("blames")[1:]:
        item = objects[row["object"]]
        process = source.processes[int(item["process"])].index
        key = (
            process, int(item["address"]), libptttrack_sums.KINDS[int(item["kind"])],
            int(threads["tid"][row["thread"]]), int(sites[row["site"]]),
        )  # fmt: skip
        blamed[key] = blamed.get(key, 0) + int(row["caused_ns"])
    held: dict[int, int] = {}
    for row in model.table("blames")[1:]:
        held[int(row["object"])] = held.get(int(row["object"]), 0) + int(row["caused_ns"])
    for number, item in enumerate(objects):
        assert held.get(number, 0) == int(item["held_ns"]), number
    # If a waiter gives up, the model estimates the correction of the blame of several readers.
    gave_up = {(r.process, r.address) for r in reference.rows if r.wait_class == "timeout"}
    vague = reference.vague | {(r.process, r.address) for r in reference.rows if r.vague}
    for key in blamed.keys() | reference.blamed.keys():
        if (key[2] == "rwlock" and key[:2] in gave_up) or key[:2] in vague:
            continue
        want = reference.blamed.get(key, Fraction(0))
        assert abs(blamed.get(key, 0) - want) <= roundings, key
