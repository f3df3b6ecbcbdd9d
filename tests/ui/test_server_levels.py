"""The drawn spans agree with the trace at every zoom, and numbers agree with other commands."""

from __future__ import annotations

import importlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nptltrace.analysis.model import model_tables
from nptltrace.api import Traceset
from nptltrace.errors import PttError
from nptltrace.ui import protocol
from nptltrace.ui.jobs import NotReady
from nptltrace.ui.queries.drawing import bin_width
from nptltrace.ui.queries.full_report import FullReport
from nptltrace.ui.shapes import fits
from nptltrace.ui.viewer import NotFound, Viewer
from tests.analysis.simulator import simulate
from tests.support import ROOT, clean_environment, small_file_system
from tests.trace.builder import Builder, Event
from tests.ui.made import A, process
from tests.ui.reference import Reference, ask, ask_once, column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Ptt

pytestmark = pytest.mark.usefixtures("_native")

# Figures of a range that are the sums of the figures of its parts.
ADDED_UP = {"wait_ns", "held_ns", "wake_ns", "hold_ns", "wait_caused_ns"} | {
    f"{name}_ns" for name in ("idle", "join", "timeout", "cancelled", "unknown", "gil")
}
MERGED = protocol.FLAGS["merged"]
HELD = protocol.STATES.index("held")


@pytest.fixture(scope="module")
def _native(native_stage: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        yield


@pytest.fixture(scope="module", params=["many kinds", "many events"])
def trace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _native: None
) -> Path:
    """Traces of simulated programs: with every kind of wait, and with waits for high trees."""
    path = tmp_path_factory.mktemp("made-up") / "made-up.ptt"
    if request.param == "many kinds":
        return simulate(path, random.Random(18), calls=True)  # noqa: S311
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        made = importlib.import_module("support.made")
        made.make_trace(path, 40_000, 6, 30)
    return path


@pytest.fixture(scope="module")
def viewer(trace: Path, _native: None) -> Iterator[Viewer]:
    """Viewer that has read the whole trace."""
    found = Viewer([trace], before=trace)
    found.start()
    found.wait_ready()
    yield found
    found.close()


def all_rows(viewer: Viewer, by: str) -> list[int]:
    rows: list[int] = ask(viewer, "rows", by=by, limit=10_000)["row"].to_pylist()
    return rows


# ---- spans ----


@pytest.mark.parametrize("width", [1, 7, 100, 1500, 16384])
@pytest.mark.parametrize("by", ["thread", "object"])
def test_spans_agree_with_waits_and_holds(viewer: Viewer, trace: Path, by: str, width: int) -> None:
    begin, end = viewer._range(-1, -1)
    bins = bin_width(begin, end, width)
    found = ask(viewer, "spans", by=by, rows=all_rows(viewer, by), width=width)
    reference = Reference.of(trace, viewer, by)
    row, state, flags = (column(found, name) for name in ("row", "state", "flags"))
    t, dur, busy, count = (column(found, name) for name in ("t_ns", "dur_ns", "busy_ns", "count"))
    assert (busy <= dur).all()
    assert ((count > 1) == (flags & MERGED != 0)).all()
    seen = 0
    for (its, what), (begins, durations) in reference.spans.items():
        own = (row == its) & (state == what)
        if by == "object" and what < HELD:
            continue  # steps of the queue: see below
        seen += int(own.sum())
        is_long = durations >= bins
        drawn = own & (flags & MERGED == 0) & (dur >= bins)
        expected = sorted(zip(begins[is_long].tolist(), durations[is_long].tolist(), strict=True))
        assert sorted(zip(t[drawn].tolist(), dur[drawn].tolist(), strict=True)) == expected
        assert int(count[own].sum()) == len(begins)
        # A short span is drawn in the bin where it begins, or in the bin before.
        short = own & ~drawn
        for edge in range(begin // bins * bins, end + bins, max(bins, (end - begin) // 50)):
            at = edge // bins * bins
            there = int(count[short & (t < at)].sum())
            earlier = int((begins[~is_long] < at).sum())
            assert earlier <= there <= int((begins[~is_long] < at + bins).sum())
    is_hold = state >= HELD
    assert int(is_hold.sum() if by == "object" else len(row)) == seen


def test_many_rows_are_drawn_in_fewer_pixels_each(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of an answer is limited, however much a client asks for."""
    rows = all_rows(viewer, "thread")
    few = ask(viewer, "spans", by="thread", rows=rows, width=20)
    assert few.num_rows < ask(viewer, "spans", by="thread", rows=rows, width=16384).num_rows
    monkeypatch.setattr(protocol, "MAX_DRAWN", 20 * len(rows))
    assert ask(viewer, "spans", by="thread", rows=rows, width=16384).equals(few)
    assert ask(viewer, "spans", by="thread", rows=rows, width=5).num_rows <= few.num_rows


def test_a_queue_is_as_deep_as_there_are_waiters(viewer: Viewer, trace: Path) -> None:
    reference = Reference.of(trace, viewer, "object")
    detail = viewer._worker.levels.detail
    assert detail is not None
    begin, end = viewer._range(-1, -1)
    for row in all_rows(viewer, "object"):
        parts = [
            spans for (at, state), spans in reference.spans.items() if at == row and state < HELD
        ]
        waited = sum(int(durations.sum()) for _, durations in parts)
        step = max((end - begin) // 20, 1)
        area = 0
        for at in range(begin, end + 1, step):
            # At this zoom no spans are merged: each wait is a step up and a step down.
            found = detail.spans("object", [row], at, at + step, 1) if step < 30_000 else None
            if found is None:
                break
            steps = found[found["lane"] == 0]
            low = np.maximum(steps["t_ns"], at)
            high = np.minimum(steps["t_ns"] + steps["dur_ns"], at + step)
            area += int(((high - low) * steps["depth"]).sum())
        else:
            assert area == waited


@pytest.mark.parametrize("by", ["thread", "object"])
def test_spans_of_a_lane_do_not_overlap(viewer: Viewer, by: str) -> None:
    found = ask(viewer, "spans", by=by, rows=all_rows(viewer, by), width=16384).to_pylist()
    ends: dict[tuple[int, int], int] = {}
    for span in sorted(found, key=lambda s: (s["row"], s["lane"], s["t_ns"], s["dur_ns"])):
        if span["lane"] and not span["flags"] & MERGED:
            key = (span["row"], span["lane"])
            assert span["t_ns"] >= ends.get(key, -(2**62))
            ends[key] = span["t_ns"] + span["dur_ns"]


def test_outer_holds_are_in_lanes_above_inner_holds(tmp_path: Path) -> None:
    made, outer, inner = Builder(tmp_path / "nested.ptt"), 0x10, 0x20
    names = ("MUTEX_TAKEN", "MUTEX_FREE")
    steps = [(0, outer), (0, inner), (1, inner), (0, inner), (1, outer), (1, inner)]
    made.thread(1, [Event(10 + n, names[what], lock) for n, (what, lock) in enumerate(steps)])
    other = Viewer([made.write()])
    other.start()
    other.wait_ready()
    try:
        spans = ask(other, "spans", by="thread", rows=[1], width=16384).to_pylist()
        rows = {r["row"]: r["object"] for r in ask(other, "rows", by="object").to_pylist()}
        lanes = sorted((span["lane"], span["t_ns"], rows[span["other"]]) for span in spans)
        assert lanes == [(1, 0, "0x10"), (2, 1, "0x20"), (2, 3, "0x20")]
    finally:
        other.close()


def test_moving_the_range_does_not_change_what_is_inside(viewer: Viewer) -> None:
    detail = viewer._worker.levels.detail
    assert detail is not None
    begin, end = viewer._range(-1, -1)
    chance = random.Random(1)  # noqa: S311
    for by in ("thread", "object"):
        rows = all_rows(viewer, by)
        for _ in range(20):
            size = max((end - begin) // chance.choice([2, 10, 100]), 1)
            low = begin + chance.randrange(end - begin)
            bins = bin_width(low, low + size, 300)
            if (end - begin) // bins > 30_000:
                continue
            whole, part = (
                detail.spans(by, rows, *range_, bins)
                for range_ in ((begin, end), (low, low + size))
            )
            inside = [
                {
                    tuple(span.tolist())
                    for span in spans
                    if span["t_ns"] >= low + bins
                    and span["t_ns"] + span["dur_ns"] < low + size - bins
                    and span["lane"] > 0
                }
                for spans in (whole, part)
            ]
            assert inside[0] == inside[1]


# ---- rows ----


def test_locks_at_an_address_have_a_row_for_each_initialization_site(tmp_path: Path) -> None:
    """Three locks follow one another at an address: two of the same kind, one of another kind."""
    made, lock, guard = Builder(tmp_path / "reused.ptt"), 0x7000_0000_0010, 0x404040
    kind = {"kind": 0, "protocol": 0, "robust": 0, "shared": 0}
    order, account = 1, 2
    made.processes = process(0, dict.fromkeys((1, 2, 3, 4), "thread"))
    threads: dict[int, list[Event]] = {tid: [] for tid in (1, 2, 3, 4)}
    for start, site, first, second in ((0, order, 1, 2), (100, account, 3, 4), (200, order, 1, 3)):
        ms = 1_000_000
        threads[1].append(Event((start + 1) * ms, "MUTEX_INIT", lock, site, fields=kind))
        threads[first] += [
            Event((start + 10) * ms, "MUTEX_TAKEN", guard, 3),
            Event((start + 11) * ms, "MUTEX_TAKEN", lock, 3),
            Event((start + 40) * ms, "MUTEX_FREE", lock, 3),
            Event((start + 41) * ms, "MUTEX_FREE", guard, 3),
        ]
        waited = {"result": 0, "wait_ns": 20 * ms}
        threads[second] += [
            Event((start + 40) * ms + 5, "MUTEX_TAKEN", lock, 4, variant="WAITED", fields=waited),
            Event((start + 50) * ms, "MUTEX_FREE", lock, 4),
        ]
        threads[1].append(Event((start + 60) * ms, "MUTEX_DESTROY", lock, site))
    # Another lock is never used. The report does not count this lock either.
    threads[1] += [
        Event(180 * ms, "MUTEX_INIT", lock, order, fields=kind),
        Event(181 * ms, "MUTEX_DESTROY", lock, order),
    ]
    for tid, events in threads.items():
        made.thread(tid, sorted(events, key=lambda event: event.ticks))
    other = Viewer([made.write()])
    other.start()
    other.wait_ready()
    try:
        rows = [row for row in ask(other, "rows", by="object").to_pylist() if row["waits"]]
        by_site = {
            site: row for row in rows for site in ("0x500001", "0x500002") if site in row["label"]
        }
        assert len(rows) == len(by_site) == 2
        one, another = (by_site[site] for site in ("0x500001", "0x500002"))
        assert [row["generations"] for row in (one, another)] == [2, 1]
        assert [row["waits"] for row in (one, another)] == [2, 1]
        assert [row["threads"] for row in (one, another)] == [3, 2]
        assert ask(other, "rows", by="object", filter="0x500002")["row"].to_pylist() == [
            another["row"]
        ]
        for row, times, unused in ((one, (0, 59, 200, 259), 2), (another, (100, 159), 0)):
            events = ask(other, "events", object=[row["row"]])
            assert set(events["object_row"].to_pylist()) == {row["row"]}
            found = [ts // 1_000_000 for ts in events["ts_ns"].to_pylist()]
            assert (found[0], found[-1]) == (times[0], times[-1])
            assert len(found) == 3 * len(times) + unused
            (figures,) = ask(other, "over_time", object=[row["row"]], bins=1)["locks"]
            assert sum(figures["waits"]["count"]) == row["waits"]
            assert sum(figures["holds"]["count"]) == row["holds"]
        wanted = {edge["wanted_row"] for edge in ask(other, "order")["edges"]}
        assert wanted == {one["row"], another["row"]}
    finally:
        other.close()


# ---- details ----


def test_a_chain_leaves_out_earlier_waits_of_the_same_thread(tmp_path: Path) -> None:
    """A woken thread then waits for the mutex. Its earlier wait is not the reason for that wait."""
    made, lock, cond = Builder(tmp_path / "woken.ptt"), 0x10, 0x20
    result = {"result": 0}
    made.thread(1, [
        Event(0, "MUTEX_TAKEN", lock),
        Event(10, "COND_WAIT_IN", cond, fields={"mutex": lock}),
        Event(11, "MUTEX_FREE", lock),
        Event(9_000_000, "MUTEX_TAKEN", lock),
        Event(9_000_010, "COND_WAIT_OUT", cond, fields=result | {"wait_ns": 9_000_000}),
    ])  # fmt: skip
    made.thread(2, [
        Event(50_000, "MUTEX_TAKEN", lock),
        Event(60_000, "COND_SIGNAL", cond),
        Event(100_000, "MUTEX_FREE", lock),
    ])  # fmt: skip
    other = Viewer([made.write()])
    other.start()
    other.wait_ready()
    try:
        spans = ask(other, "spans", by="thread", rows=[1, 2], width=16384)
        (number,) = (
            wait["wait_id"]
            for wait in spans.to_pylist()
            if wait["state"] == protocol.STATES.index("contended")
        )
        (only,) = other.wait(number)["chain"]
        assert (only["thread"]["tid"], only["owner"]["tid"]) == (1, 2)  # type: ignore[index]
    finally:
        other.close()


def test_a_wait_has_the_holders_and_their_states(tmp_path: Path) -> None:
    """Two threads take a lock in turns while a third thread waits; one of the two sleeps."""
    made, ms = Builder(tmp_path / "overtaken.ptt"), 1_000_000
    waited = {"result": 0, "wait_ns": 90 * ms}
    waits, sleeps = {"owner": 2}, {"call": protocol.CALLS.index("usleep")}
    times = [(2, 0, 30), (3, 31, 51), (2, 52, 82), (3, 83, 93)]
    threads: dict[int, list[Event]] = {
        1: [
            Event(10 * ms, "MUTEX_WAIT", A, fields=waits),
            Event(100 * ms, "MUTEX_TAKEN", A, variant="WAITED", fields=waited),
            Event(110 * ms, "MUTEX_FREE", A),
        ],
        2: [], 3: [],
    }  # fmt: skip
    for tid, begin, end in times:
        threads[tid] += [Event(begin * ms, "MUTEX_TAKEN", A), Event(end * ms, "MUTEX_FREE", A)]
        if tid == 2:
            threads[tid][-1:-1] = [
                Event((begin + 11) * ms, "SYS_CALL_IN", 0, fields=sleeps),
                Event((begin + 29) * ms, "SYS_CALL_OUT", 0, fields=sleeps),
            ]
    for tid, events in threads.items():
        made.thread(tid, events)
    other = Viewer([made.write()])
    other.start()
    other.wait_ready()
    try:
        (wait,) = ask(other, "waits", wait_class="contended").to_pylist()
        (found, *_) = ask(other, "wait", id=wait["wait_id"])["chain"]
        holders = found["holders"]
        assert [
            (one["thread"]["tid"], one["holds"], one["ns"] // ms) for one in holders["threads"]
        ] == [(2, 2, 50), (3, 2, 30)]
        assert (holders["taken"], holders["threads_total"]) == (3, 2)
        assert (found["held_ns"] // ms, found["wake_ns"] // ms) == (80, 10)
        asleep = [one for one in holders["threads"][0]["doing"] if one["state"] == "asleep"]
        assert [(one["call"], one["ns"] // ms) for one in asleep] == [("usleep", 36)]
        (span,) = (
            one
            for one in ask(other, "spans", by="thread", rows=[wait["thread_row"]]).to_pylist()
            if one["wait_id"] == wait["wait_id"]
        )
        # The lock was free in between, too. The span does not say when.
        assert span["wake_ns"] // ms == 10
        assert not span["flags"] & protocol.FLAGS["woken"]
    finally:
        other.close()


def test_waits_agree_with_the_table(viewer: Viewer, trace: Path) -> None:
    waits = Reference.of(trace, viewer, "thread").waits.to_pylist()
    assert len(waits) > 20
    for wait in waits[:: max(len(waits) // 300, 1)]:
        chain = ask(viewer, "wait", id=wait["wait_id"])["chain"]
        found = chain[0]
        assert (found["t_ns"], found["dur_ns"]) == (wait["t_ns"], wait["dur_ns"])
        assert (found["wait_class"], found["kind"]) == (wait["class"], wait["kind"])
        assert found["thread"]["tid"] == wait["tid"]
        assert (found["owner"] or {"tid": None})["tid"] == wait["owner_tid"]
        assert (found["waker"] or {"tid": None})["tid"] == wait["waker_tid"]
        assert found["object"]["object"] == f"{wait['object']:#x}"
        assert bool(found["stack"]) is bool(wait["stack"])
        assert not found["stack"] or found["stack"][0] == found["site"]
        assert not wait["owner_stack_number"] or found["owner_stack"][0] == found["owner_site"]
        following = chain[1]["wait_id"] if len(chain) > 1 else None
        assert following == wait["parent_wait"]
    with pytest.raises(NotFound):
        ask(viewer, "wait", id=2**40)


def test_the_list_of_waits_is_filtered(viewer: Viewer, trace: Path) -> None:
    waits = Reference.of(trace, viewer, "thread").waits.to_pylist()
    begin, end = viewer._range(-1, -1)
    middle = [begin + (end - begin) * n // 3 for n in (1, 2)]
    lengths = sorted(wait["dur_ns"] for wait in waits)
    some = ask(viewer, "wait", id=waits[len(waits) // 2]["wait_id"])["chain"][0]
    cases: list[tuple[dict[str, Any], Callable[[Any], bool]]] = [
        ({}, lambda _: True),
        ({"least_ns": lengths[len(lengths) // 2]},
         lambda one: one["dur_ns"] >= lengths[len(lengths) // 2]),
        ({"from_ns": middle[0], "to_ns": middle[1]},
         lambda one: one["t_ns"] < middle[1] and one["t_ns"] + one["dur_ns"] >= middle[0]),
        ({"wait_class": "idle"}, lambda one: one["class"] == "idle"),
        ({"thread": [some["thread"]["row"]]}, lambda one: one["tid"] == some["thread"]["tid"]),
        ({"object": [some["object"]["row"]]},
         lambda one: f"{one['object']:#x}" == some["object"]["object"]),
    ]  # fmt: skip
    for asked, is_wanted in cases:
        found = ask(viewer, "waits", limit=10_000, **asked)
        expected = sorted((one["dur_ns"], one["wait_id"]) for one in waits if is_wanted(one))
        shown = zip(found["dur_ns"].to_pylist(), found["wait_id"].to_pylist(), strict=True)
        assert sorted(shown) == expected, asked
        assert int(found.schema.metadata[b"total"]) == len(expected)
    everything = ask(viewer, "waits", limit=10_000)
    there = [site for site in everything["site"].to_pylist() if some["site"] in site]
    at_site = ask(viewer, "waits", limit=10_000, site=some["site"])
    assert at_site["site"].to_pylist() == there
    longest = ask(viewer, "waits", limit=1)
    assert longest["dur_ns"].to_pylist() == lengths[-1:]
    # The parts of a wait in adjacent ranges add up to the wait.
    edges = [begin, *middle, end + 1]
    inside = [
        int(ask(viewer, "waits", from_ns=a, to_ns=b).schema.metadata[b"inside_ns"])
        for a, b in pairwise(edges)
    ]
    assert sum(inside) == sum(lengths)


def test_a_queue_has_the_states_of_its_waiters(tmp_path: Path) -> None:
    def wait(ms: int, name: str, **fields: int) -> Event:
        return Event(10**12 + ms * 10**6, name, 0x4040, 5, fields=fields)

    def waits(since: int, until: int) -> list[Event]:
        begun = wait(since, "FUTEX_WAIT_IN", op=0, lock=0, expected=0, timeout_ns=0)
        return [begun, wait(until, "FUTEX_WAIT_OUT", result=0, wait_ns=(until - since) * 10**6)]

    made = Builder(tmp_path / "unknown.ptt")
    made.thread(1, waits(10, 50))
    made.thread(2, waits(20, 100)[:1])
    made.thread(3, [wait(0, "THREAD_BEGIN"), wait(100, "THREAD_END")])
    viewer = Viewer([made.write()])
    viewer.start()
    viewer.wait_ready()
    try:
        queue = ask(viewer, "spans", by="object", rows=all_rows(viewer, "object"), width=1000)
        assert set(column(queue, "state").tolist()) == {protocol.STATES.index("unknown")}
        assert column(queue, "depth").max() == 2
    finally:
        viewer.close()


def test_a_hold_is_found_by_its_place(viewer: Viewer) -> None:
    rows = all_rows(viewer, "thread")
    spans = ask(viewer, "spans", by="thread", rows=rows, width=16384).to_pylist()
    holds = [s for s in spans if s["lane"] > 0 and not s["flags"] and s["dur_ns"] > 1]
    assert holds
    sites = []
    for span in holds[:50]:
        found = ask(viewer, "hold", row=span["row"], lane=span["lane"], t_ns=span["t_ns"] + 1)
        assert (found["t_ns"], found["dur_ns"]) == (span["t_ns"], span["dur_ns"])
        assert found["object"]["row"] == span["other"]
        sites.append(found["site"])
        assert not found["stack"] or found["stack"][0] == found["site"]
    # Calls of the other program have no call sites.
    assert all(sites) or "made-up" not in ask(viewer, "trace")["processes"][0]["exe"]


# ---- numbers of other commands ----


@pytest.mark.parametrize("by", ["object", "thread", "site", "thread,object"])
@pytest.mark.parametrize("part", [(), ("--from", "1us", "--to", "1ms")])
def test_contention_agrees_with_the_report(
    viewer: Viewer, trace: Path, ptt: Ptt, by: str, part: tuple[str, ...]
) -> None:
    window = {"from_ns": 1000, "to_ns": 1_000_000} if part else {}
    answer = ask(viewer, "contention", by=by, limit=2000, **window)
    report = json.loads(ptt("report", "--format", "json", "--by", by, *part, trace).stdout)
    assert answer["report"] == report
    rows = {row["row"]: row for row in ask(viewer, "rows", by="object", limit=9999).to_pylist()}
    for item, row in zip(report["objects"], answer["object_rows"], strict=True):
        assert (rows[row]["object"], rows[row]["kind"]) == (item["object"], item["kind"])
        if not part:
            for name in ("waits", "wait_ns", "wait_max_ns", "idle_ns", "holds", "hold_ns"):
                assert rows[row][name] == item[name]
    threads = {row["row"]: row for row in ask(viewer, "rows", by="thread", limit=9999).to_pylist()}
    for item, row in zip(report["threads"], answer["thread_rows"], strict=True):
        assert threads[row]["tid"] == item["tid"]


def test_sums_of_a_mark_count_only_parts_inside(viewer: Viewer, trace: Path) -> None:
    """Waits and holds that reach out of a mark count with the part inside; so do threads."""
    whole = model_tables(Traceset(trace))
    first, last = column(whole.threads, "start_ns"), column(whole.threads, "last_ns")
    tables = {"waits": whole.waits, "holds": whole.holds}
    begins = {name: column(table, "t_ns") for name, table in tables.items()}
    ends = {name: begins[name] + column(table, "dur_ns") for name, table in tables.items()}
    choose = random.Random(9)  # noqa: S311
    for _ in range(100):
        begin, end = sorted(choose.sample(range(int(np.nanmax(last))), 2))
        found = ask(viewer, "statistics", from_ns=begin, to_ns=end)
        reported = found["figures"]
        inside = {n: (begins[n] < end) & ((ends[n] > begin) | (begins[n] >= begin)) for n in ends}
        parts = {n: np.minimum(ends[n], end) - np.maximum(begins[n], begin) for n in ends}
        contended = inside["waits"] & (column(whole.waits, "class") == "contended")
        assert reported["waits"] == contended.sum()
        assert reported["wait_ns"] == parts["waits"][contended].sum()
        assert found["blocked_ns"] == parts["waits"][inside["waits"]].sum()
        assert reported["holds"] == inside["holds"].sum()
        assert reported["hold_ns"] == parts["holds"][inside["holds"]].sum()
        assert found["threads"] >= ((first < end) & (last >= begin)).sum()


def test_sums_of_adjacent_marks_add_up(viewer: Viewer) -> None:
    """Times of waits and holds, and counts of events, add up to the figures of the whole."""
    whole = times_of(ask(viewer, "statistics"))
    assert whole["hold_ns"]
    last = ask(viewer, "trace")["end_ns"]
    choose = random.Random(31)  # noqa: S311
    for _ in range(5):
        cuts = sorted(choose.sample(range(1, last), 7))
        total: Counter[str] = Counter()
        for begin, end in pairwise([-1, *cuts, -1]):
            total += times_of(ask(viewer, "statistics", from_ns=begin, to_ns=end))
        assert total == whole, sorted((total - whole).items())


def times_of(statistics: dict[str, Any]) -> Counter[str]:
    """Return the statistics that are additive, by name."""
    found = Counter(statistics["event_types"])
    found.update({name: statistics[name] for name in ("events", "blocked_ns")})
    figures = statistics["figures"]
    found.update({name: figures[name] for name in figures.keys() & ADDED_UP})
    return found


def test_findings_agree_with_check(viewer: Viewer, trace: Path, ptt: Ptt) -> None:
    checked = json.loads(ptt("check", "--format", "json", trace, status=None).stdout)
    answer = ask(viewer, "findings")
    assert answer["findings"] == checked["findings"]
    assert len(answer["rows"]) == len(answer["findings"])


def test_statistics_agree_with_stat(viewer: Viewer, trace: Path, ptt: Ptt) -> None:
    reported = json.loads(ptt("stat", "--format", "json", trace).stdout)
    answer = ask(viewer, "statistics")
    assert (answer["events"], answer["event_types"]) == (
        reported["events"],
        reported["event_types"],
    )
    assert ask(viewer, "trace")["events"] == reported["events"]
    overview = ask(viewer, "overview", width=100)
    assert int(column(overview, "events").sum()) == pytest.approx(reported["events"], abs=1)


def test_losses_are_drawn_at_their_times(tmp_path: Path) -> None:
    made = Builder(tmp_path / "lost.ptt")
    made.thread(1, [Event(1000 + n, "MUTEX_TAKEN", 64) for n in range(100)])
    late = made.thread(2, [Event(1900 + n, "MUTEX_TAKEN", 128) for n in range(101)])
    late.discarded = 7
    made.write()
    for _ in range(2):  # the kept files give the same answer
        other = Viewer([made.path])
        other.start()
        other.wait_ready()
        lost = column(ask(other, "overview", width=10), "lost").tolist()
        assert lost[:9] == [0] * 9
        assert lost[9] == 7
        other.close()


def test_answers_have_the_declared_shapes(viewer: Viewer) -> None:
    rows = all_rows(viewer, "thread")
    some: dict[str, dict[str, Any]] = {
        "rows": {"by": "thread"},
        "spans": {"by": "thread", "rows": rows},
        "arrows": {"rows": rows},
        "wait": {"id": 1},
        "search": {"q": "t"},
    }
    for endpoint in protocol.ENDPOINTS:
        if endpoint.name in {"live", "cut", "export", "hold", "invite"}:
            continue
        answer = ask(viewer, endpoint.name, **some.get(endpoint.name, {}))
        if hasattr(answer, "schema"):
            assert answer.schema.remove_metadata() == endpoint.answer, endpoint.name
            assert all(not answer[name].null_count for name in answer.column_names)
        else:
            assert fits(endpoint.answer, answer), endpoint.name
    assert fits(protocol.Live, viewer.wait_change(-1, 0.1))


def test_arrows_agree_with_waits(viewer: Viewer, trace: Path) -> None:
    waits = {w["wait_id"]: w for w in Reference.of(trace, viewer, "thread").waits.to_pylist()}
    rows = {r["row"]: r for r in ask(viewer, "rows", by="thread", limit=9999).to_pylist()}
    arrows = ask(
        viewer, "arrows", rows=list(rows), width=16384, limit=10_000
    ).to_pylist()  # fmt: skip
    assert arrows
    for arrow in arrows:
        wait = waits[arrow["wait_id"]]
        assert rows[arrow["to_row"]]["tid"] == wait["tid"]
        if protocol.ARROW_KINDS[arrow["kind"]] == "wake":
            assert rows[arrow["from_row"]]["tid"] == wait["waker_tid"]
            assert arrow["to_ns"] == wait["t_ns"] + wait["dur_ns"]
        else:
            assert rows[arrow["from_row"]]["tid"] == wait["owner_tid"]
            assert arrow["from_ns"] == wait["t_ns"]


# ---- the event list ----


def walk(viewer: Viewer, direction: str, count: int, **filters: Any) -> list[dict[str, Any]]:
    """Return all events that pass the filters, read in parts."""
    found: list[dict[str, Any]] = []
    place: dict[str, Any] = {"t_ns": 0 if direction == "forward" else 2**62}
    while True:
        table = ask(viewer, "events", direction=direction, count=count, **place, **filters)
        rows = table.to_pylist()
        found = found + rows if direction == "forward" else rows + found
        metadata = table.schema.metadata
        if metadata[b"done"] == b"1":
            return found
        place = {"position": metadata[b"next"].decode()}


def test_the_list_has_every_event_once_in_both_directions(
    viewer: Viewer, trace: Path, ptt: Ptt
) -> None:
    count = max(37, ask(viewer, "trace")["events"] // 30)
    forward = walk(viewer, "forward", count)
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    reported = [json.loads(line) for line in lines]
    assert [(e["ts_ns"], e["tid"], e["event"]) for e in forward] == [
        (e["ts_ns"], e["tid"], e["event"]) for e in reported
    ]
    assert len({event["position"] for event in forward}) == len(forward)
    assert walk(viewer, "backward", count + 4) == forward
    middle = forward[len(forward) // 2]
    again = ask(viewer, "events", position=middle["position"], count=1).to_pylist()
    assert again == [middle]


def test_the_list_of_events_is_filtered(viewer: Viewer) -> None:
    everything = walk(viewer, "forward", 5000)
    some = next(e for e in everything if e["event"] == "MUTEX_FREE" and e["object_row"])
    count = max(13, len(everything) // 20)
    thread, lock = some["thread_row"], some["object_row"]
    for filters, passes in (
        ({"thread": [thread]}, lambda e: e["thread_row"] == thread),
        ({"object": [lock]}, lambda e: e["object"] == some["object"] and e["pid"] == some["pid"]),
        ({"event": "MUTEX,COND"}, lambda e: e["event"].startswith(("MUTEX", "COND"))),
        ({"text": "RELEASED"}, lambda e: "released" in e["sentence"]),
        (
            {"thread": [thread], "event": "MUTEX"},
            lambda e: e["thread_row"] == thread and e["event"].startswith("MUTEX"),
        ),
    ):
        expected = [e for e in everything if passes(e)]
        assert expected
        assert walk(viewer, "forward", count, **filters) == expected
        assert walk(viewer, "backward", count, **filters) == expected


# ---- kept files ----


def test_kept_files_give_the_same_answers(viewer: Viewer, trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ptt"
    shutil.copytree(trace, copy)
    shutil.rmtree(copy / ".ptt-view")
    answers = []
    for kept in (False, True):
        other = Viewer([copy])
        other.start()
        other.wait_ready()
        source = other._worker.source
        assert (other._worker.levels.model is None) or not kept
        rows = all_rows(other, "thread")
        answers.append(
            (
                ask(other, "rows", by="object").to_pylist(),
                ask(other, "spans", by="thread", rows=rows, width=777).to_pylist(),
                ask(other, "contention"),
                ask(other, "findings"),
                ask(other, "order"),
                ask(other, "path", width=100).to_pylist(),
                ask(other, "overview", width=100).to_pylist(),
                ask(other, "events", count=200).to_pylist(),
                [source.names.of(n) for n in range(len(source.thread_ids))],
                source.names.known,
            )
        )
        other.close()
    assert answers[0] == answers[1]
    assert answers[0][2] == ask(viewer, "contention")
    assert not [path for path in (copy / ".ptt-view").iterdir() if path.name.startswith(".")]


def test_files_of_a_viewer_that_ended_early_are_completed(
    viewer: Viewer, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.ptt"
    shutil.copytree(trace, copy)
    shutil.rmtree(copy / ".ptt-view")
    with monkeypatch.context() as patch:
        patch.setattr(FullReport, "find", lambda *_: False)
        early = Viewer([copy])
        early.start()
        early.wait_ready()
        early.close()
        with pytest.raises(NotReady):
            ask_once(early, "findings")
    other = Viewer([copy])
    other.start()
    other.wait_ready()
    assert other._worker.levels.model is None
    for question in ("contention", "findings"):
        assert ask(other, question) == ask(viewer, question)
    other.close()


def test_a_damaged_report_is_reported(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ptt"
    shutil.copytree(trace, copy)
    [kept] = (copy / ".ptt-view").glob("analysis-*")
    identity, rest = kept.read_bytes()[:32], kept.read_bytes()[32:]
    findings, threads, _ = rest.splitlines(keepends=True)
    for report in (b"", b"{", b"[1]", b"null"):
        kept.write_bytes(identity + findings + threads + report)
        other = Viewer([copy])
        other.start()
        other.wait_ready()
        with pytest.raises(PttError, match=r"\.ptt-view is damaged"):
            ask(other, "contention")
        other.close()
    # The names of threads must fit this trace. Otherwise everything is computed again.
    for line in (b'{"named":[99],"names":["x"],"pthreads":[],"creators":[]}', b"3", b"[[]]"):
        kept.write_bytes(identity + findings + line + b"\n{}")
        other = Viewer([copy])
        other.start()
        other.wait_ready()
        assert ask(other, "contention")["report"]["objects"]
        other.close()


_READS = """
import random, sys
from pathlib import Path
from nptltrace.ui.viewer import Viewer
from tests.ui.made import A, process
from tests.ui.reference import ask

trace, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
whole = {path: path.read_bytes() for path in (trace / ".ptt-view").iterdir()}
for turn in range(60):
    for path, data in whole.items():
        data = bytearray(data)
        if turn % 3 == 0:
            del data[chance.randrange(len(data)):]
        for _ in range(chance.choice([0, 1, 8, 64]) if data else 0):
            at = chance.choice([chance.randrange(len(data)), chance.randrange(min(len(data), 256))])
            data[max(at, 32 if path.name.startswith("detail") else 0)] = chance.randrange(256)
        path.write_bytes(data)
    viewer = Viewer([trace])
    if viewer._worker._open_kept() or viewer._worker.levels.open():
        for by in ("thread", "object"):
            rows = [1, 2, 3, 4, 5, 6, 7, 8]
            for width in (1, 100, 5000):
                ask(viewer, "spans", by=by, rows=rows, width=width)
            try:
                ask(viewer, "rows", by=by)
            except (ValueError, OverflowError, IndexError):
                pass
            for event in ask(viewer, "events", count=5).to_pylist():
                assert event["sentence"]
        for number in range(1, 30):
            try:
                ask(viewer, "wait", id=number)
            except Exception as error:
                assert type(error).__name__ in {"NotFound", "IndexError", "OverflowError"}, error
    viewer.close()
print("done")
"""


def test_hostile_kept_files_do_not_crash_the_viewer(trace: Path, tmp_path: Path) -> None:
    copy = tmp_path / "hostile.ptt"
    shutil.copytree(trace, copy)
    command = [sys.executable, "-c", _READS, str(copy), "5"]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, timeout=240,
        env=clean_environment(PYTHONPATH="src:."),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]


def test_a_link_in_place_of_the_directory_is_not_followed(trace: Path, tmp_path: Path) -> None:
    copy, elsewhere = tmp_path / "link.ptt", tmp_path / "elsewhere"
    shutil.copytree(trace, copy)
    shutil.rmtree(copy / ".ptt-view")
    elsewhere.mkdir()
    (copy / ".ptt-view").symlink_to(elsewhere)
    other = Viewer([copy])
    other.start()
    other.wait_ready()
    assert ask(other, "trace")["detail"]["ready"]
    other.close()
    assert not list(elsewhere.iterdir())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "small", "16m") as place:
        yield place


@pytest.mark.parametrize("left", [0, 100_000, 3_000_000])
def test_a_trace_on_a_full_disk_is_drawn_from_a_temporary_place(
    viewer: Viewer, trace: Path, small: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    copy = small / "copy.ptt"
    shutil.copytree(trace, copy, ignore=shutil.ignore_patterns(".ptt-view"))
    (copy / ".ptt-view").mkdir()
    (small / "filling").write_bytes(bytes(shutil.disk_usage(small).free - left))
    full = Viewer([copy])
    full.start()
    full.wait_ready()
    for question in ("contention", "findings"):
        assert ask(full, question) == ask(viewer, question)
    assert ask(full, "trace")["detail"]["error"] == ""
    full.close()
    assert not [path for path in (copy / ".ptt-view").iterdir() if path.name.startswith(".")]
    # If the temporary directory has no room either, the viewer reports that.
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    shutil.rmtree(copy / ".ptt-view")
    (copy / ".ptt-view").touch()
    (small / "rest").write_bytes(bytes(shutil.disk_usage(small).free))
    nowhere = Viewer([copy])
    nowhere.start()
    nowhere.wait_ready()
    reported = ask(nowhere, "trace")["detail"]["error"]
    assert reported.endswith(f"No space left on device, in {small}: make room there, or set TMPDIR")
    nowhere.close()
