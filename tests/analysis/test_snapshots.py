"""Saved states of the model: windows from them are the same, and damage does no harm."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nptltrace._binding import libpttread, libptttrack_sums
from nptltrace._files import cache
from nptltrace.analysis import snapshots
from nptltrace.analysis.cutting import write_cut
from nptltrace.analysis.model import (
    Counted,
    Window,
    begin_window,
    event_buffers,
    new_model,
    run_model,
)
from nptltrace.api import Traceset
from nptltrace.trace.copying import Part
from nptltrace.trace.reading import prefetch
from nptltrace.ui.viewer import Viewer
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.support import Recorder

ALL = libptttrack_sums.PAIRS | libptttrack_sums.EDGES | libptttrack_sums.PATH


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of saved states; small traces are saved too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(snapshots, "_EVENTS", 100)
    monkeypatch.setattr(prefetch, "_BATCH", 64)
    return tmp_path / "cache" / "nptltrace" / "states"


def tables(source: Traceset, window: Window) -> dict[str, NDArray[Any]]:
    model = run_model(source, ALL, window=window)
    arrays = {name: model.table(name) for name in ("objects", "sites", "threads", "edges")}
    # Pairs without waits and holds may be there or not.
    pairs = model.table("pairs")
    pairs = pairs[(pairs["wait_n"].sum(axis=1) > 0) | (pairs["hold_n"] > 0)]
    arrays["pairs"] = np.sort(pairs, order=["thread", "object"])
    keys = ["object", "site", "wanted", "call", "state"]
    arrays["insides"] = np.sort(model.table("insides")[1:], order=keys)
    samples = run_model(source, libptttrack_sums.INSIDE_OF, window=window).table("hold_samples")
    arrays["hold_samples"] = np.sort(samples, order=["t_ns", "thread", "object", "state", "site"])
    arrays["path"] = np.concatenate([model.table("segments"), *(p.copy() for p in model.path())])
    return arrays


def assert_same(source: Traceset, window: Window, expected: dict[str, NDArray[Any]]) -> None:
    for name, rows in tables(source, window).items():
        # Histograms are numbered in the order of their first use.
        for column in set(rows.dtype.names or ()) - {"histogram", "used"}:
            np.testing.assert_array_equal(rows[column], expected[name][column], f"{name} {column}")


@pytest.mark.parametrize("options", [("-l", "2"), ("-l", "3"), ("--handler", "shared")])
def test_windows_from_saved_states(
    options: tuple[str, ...], kept: Path, program: Callable[[str], Path], record: Recorder
) -> None:
    source = Traceset(record(program("mix"), "3", "80", options=options))
    end = source.end_ns() or 0
    choose = random.Random(1)  # noqa: S311
    windows = [Window(*sorted(choose.sample(range(end), 2))) for _ in range(15)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "_EVENTS", 10**9)
        expected = [tables(source, window) for window in windows]
    assert not kept.exists()
    run_model(source, window=Window(end - 1, None))
    (file,) = kept.iterdir()
    assert (file.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o600, 0o700)
    assert snapshots.latest(source, 0) is None
    state = snapshots.latest(source, end)
    assert state is not None
    assert end // 2 < state.ts_ns < end
    for window, want in zip(windows, expected, strict=True):
        assert_same(source, window, want)


def test_a_hold_from_before_a_saved_state(kept: Path, tmp_path: Path) -> None:
    """Others wait for the lock before the hold, and before and after the saved state."""

    def event(ms: int, name: str, thing: int = 0x4040, **fields: int) -> Event:
        variant = "WAITED" if "wait_ns" in fields and "TAKEN" in name else ""
        return Event(10**12 + ms * 10**6, name, thing, 5, variant=variant, fields=fields)

    def call(ms: int) -> list[Event]:
        end = event(ms + 5, "SYS_CALL_OUT", 0, call=1, result=0, wait_ns=5 * 10**6)
        return [event(ms, "SYS_CALL_IN", 0, call=1), end]

    made = Builder(tmp_path / "run.ptt", session={"state": "complete", "level": "2"})
    took, gave = "MUTEX_TAKEN", "MUTEX_FREE"
    holds = [event(0, took), event(90, gave), event(100, took), event(200, gave)]
    made.thread(1, sorted([*holds, *call(20), *call(120), *call(180)], key=lambda e: e.ticks))
    waited = event(91, took, result=0, wait_ns=81 * 10**6), event(92, gave)
    made.thread(2, [event(10, "MUTEX_WAIT", owner=1), *waited, event(110, "MUTEX_WAIT", owner=1)])
    other = ((event(ms, took, 0x5050), event(ms, gave, 0x5050)) for ms in range(190))
    made.thread(3, [e for both in other for e in both])
    source = Traceset(made.write())
    window = Window(175 * 10**6, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "_EVENTS", 10**9)
        expected = tables(source, window)
    # As in the viewer, the sums of the saved model are not empty.
    whole = new_model(source, ALL)
    begin_window(whole, source, Window())
    keeper = snapshots.Keeper(source, whole)
    for buffer in event_buffers(source, Window(), None, processors=True):
        whole.feed(buffer)
        keeper.saw(buffer.column("ts"))
    keeper.finish()
    state = snapshots.latest(source, 175 * 10**6)
    assert state is not None
    assert state.ts_ns > 125 * 10**6
    assert expected["insides"]["ns"].sum() == 25 * 10**6
    assert_same(source, window, expected)


def test_unusable_states_are_passed_over(
    kept: Path, program: Callable[[str], Path], record: Recorder
) -> None:
    trace = record(program("mix"), "4", "60", options=("-l", "2"))
    source = Traceset(trace)
    end = source.end_ns() or 0
    run_model(source, window=Window(end, None))
    state = snapshots.latest(source, end)
    assert state is not None
    window = Window(state.ts_ns + 1, end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "_EVENTS", 10**9)
        want = tables(source, window)
    (file,) = kept.iterdir()
    whole = file.read_bytes()
    choose = random.Random(2)  # noqa: S311
    damaged = [b"", whole[:-1], whole[: len(whole) // 2], b"[]" + (2).to_bytes(8, "little")]
    for _ in range(20):
        changed = bytearray(whole)
        changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
        damaged.append(bytes(changed))
    for data in damaged:
        file.write_bytes(data)
        assert_same(source, window, want)
        # The model makes a damaged state again.
        assert_same(source, window, want)
    assert snapshots.latest(source, end) is not None
    # Another trace at the same path has a state file of its own.
    file.unlink()
    other = Traceset(record(program("mix"), "5", "60", options=("-l", "2")))
    run_model(other, window=Window(other.end_ns(), None))
    (foreign,) = kept.iterdir()
    assert foreign.name != file.name
    # The model follows a choice of threads from the beginning of the trace.
    run_model(other, window=Window(other.end_ns(), None), counted=Counted(threads=[0]))


def test_a_cut_begins_from_a_saved_state(
    kept: Path, program: Callable[[str], Path], record: Recorder, tmp_path: Path
) -> None:
    source = Traceset(record(program("mix"), "8", "60", options=("-l", "2")))
    end = source.end_ns() or 0
    run_model(source, window=Window(end, None))
    state = snapshots.latest(source, end)
    assert state is not None
    cursor = libpttread.Cursor(source.reader)
    cursor.seek_key(source.reader.key_of_time(state.ts_ns + 1))
    parts = []
    for name in ("from-a-state.ptt", "from-the-beginning.ptt"):
        write_cut(source, tmp_path / name, Part(cursor.place()))
        parts.append(tables(Traceset(tmp_path / name), Window()))
        snapshots.forget(source)
    for name, rows in parts[0].items():
        for column in set(rows.dtype.names or ()) - {"histogram", "used"}:
            np.testing.assert_array_equal(rows[column], parts[1][name][column], f"{name} {column}")


def test_the_viewer_saves_states(
    kept: Path, program: Callable[[str], Path], record: Recorder
) -> None:
    trace = record(program("mix"), "6", "60", options=("-l", "2"))
    viewer = Viewer([trace])
    viewer.start()
    viewer.wait_ready()
    viewer.close()
    source = Traceset(trace)
    state = snapshots.latest(source, source.end_ns() or 0)
    assert state is not None


def test_states_keep_to_their_room(
    kept: Path, program: Callable[[str], Path], record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_FILE_MAX", 1)
    monkeypatch.setattr(cache, "_SIZE_MAX", 1)
    source = Traceset(record(program("mix"), "7", "60", options=("-l", "2")))
    run_model(source, window=Window(source.end_ns(), None))
    assert list(kept.iterdir()) == []
