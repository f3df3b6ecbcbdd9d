"""The critical path of long traces is complete, although not all waits stay in memory."""

from __future__ import annotations

import importlib
import tempfile
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.report.critical_path import CriticalPath

# Number of finished waits that stay in memory.
_HELD = 65_536


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a made-up program; almost every acquisition in it has to wait."""
    path = tmp_path_factory.mktemp("made-up") / "made-up.ptt"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        importlib.import_module("support.made").make_trace(path, 500_000, 5, 2)
    return path


def _path(trace: Path) -> CriticalPath:
    from nptltrace.analysis.report.contention import contention
    from nptltrace.api import Traceset

    return contention(Traceset(trace)).path


def _walked(trace: Path) -> tuple[dict[int, list[int]], int, int]:
    """Return time on the path by thread (running, waking, waiting), its pieces, and the waits."""
    from nptltrace.analysis.model import Window, event_buffers, model_tables
    from nptltrace.api import Traceset

    source = Traceset(trace)
    tables = model_tables(source)
    lived = {row["tid"]: row for row in tables.threads.to_pylist() if row["tid"]}
    names = ["wait_id", "tid", "t_ns", "dur_ns", "waker_tid", "waker_t_ns", "open"]
    waits = tables.waits.select(names)
    # A thread goes on a little after the end of its measured wait.
    woken = dict(
        zip(*tables.wakeups.select(["wait_id", "woken_ns"]).to_pydict().values(), strict=True)
    )
    # All threads live to the end; the path begins with the last event.
    number = [int(buffer.column("thread")[-1]) for buffer in event_buffers(source, Window())][-1]
    _, thread = source.thread_ids[number]
    t = lived[thread]["last_ns"]
    spent: dict[int, list[int]] = {tid: [0, 0, 0] for tid in lived}
    pieces = 0

    def along(what: int, begin: int, end: int) -> None:
        nonlocal pieces
        spent[thread][what] += max(end - begin, 0)
        pieces += end > begin

    columns = [column.to_pylist()[::-1] for column in waits.columns]
    for number, tid, begin, dur, waker, wake, is_open in zip(*columns, strict=True):
        end = woken.get(number, begin + dur)
        if is_open or tid != thread or begin >= t or (wake is not None and wake < begin):
            continue
        if end > t:
            along(2, begin, t)
            t = begin
            continue
        along(0, end, t)
        if waker is not None and waker != tid and wake is not None:
            along(1, wake, end)
            thread, t = waker, wake
        else:
            along(2, begin, end)
            t = begin
    along(0, lived[thread]["start_ns"], t)
    return spent, pieces, len(waits)


def test_the_path_leads_through_all_waits(trace: Path) -> None:
    path = _path(trace)
    spent, pieces, waits = _walked(trace)
    assert waits > 2 * _HELD
    assert path.resolution_ns == 0
    assert path.segments == pieces
    reported = {
        part.thread.tid: [part.run_ns, part.latency_ns, part.open_ns] for part in path.threads
    }
    assert reported == {tid: times for tid, times in spent.items() if any(times)}


def test_short_waits_are_left_out_without_room_to_store_them(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setenv("TMPDIR", "/proc/self")
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    path = _path(trace)
    assert path.resolution_ns > 0
    # No time is missing: in a time without a wait, a thread runs.
    parts = (part.run_ns + part.latency_ns + part.open_ns for part in path.threads)
    assert sum(parts) == path.end_ns - path.start_ns
