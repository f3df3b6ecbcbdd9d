"""The common part of exports to viewers: rows without overlaps, and records in time order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

_SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(_SPANS)
def test_lanes_keep_intervals_apart(spans: list[tuple[int, int, int]]) -> None:
    from nptltrace._binding.libptttrack_sums import Lanes

    spans = sorted(((g, b, b + d) for g, b, d in spans), key=lambda span: span[2])
    group, begin, end = (np.array(column) for column in zip(*spans, strict=True)) if spans else (
        np.empty(0), np.empty(0), np.empty(0)
    )  # fmt: skip
    lanes = Lanes()
    found = lanes.place(group, begin, end).tolist()
    table = lanes.table()
    rows: dict[int, list[tuple[int, int]]] = {}
    for lane, (g, b, e) in zip(found, spans, strict=True):
        assert table["group"][lane] == g
        rows.setdefault(lane, []).append((b, e))
    for row in rows.values():
        assert all(a[1] <= b[0] for a, b in pairwise(row))
    for g in {span[0] for span in spans}:
        places = sorted(int(lane["place"]) for lane in table if lane["group"] == g)
        assert places == list(range(len(places)))


def test_nested_holds_need_one_lane_for_each_depth() -> None:
    from nptltrace._binding.libptttrack_sums import Lanes

    begin, end = [], []
    for start in range(0, 10_000, 100):  # hand over hand within a longer hold
        begin += [start + 1, start + 10, start + 20, start]
        end += [start + 15, start + 25, start + 30, start + 90]
    lanes = Lanes()
    lanes.place(np.zeros(len(begin)), np.array(begin), np.array(end))
    assert len(lanes.table()) == 3


@pytest.mark.parametrize("memory", [0, 1 << 20, 1 << 30])
def test_sorting_is_stable_and_complete(memory: int) -> None:
    from nptltrace.export.writing.sorting import Sorter

    rng = np.random.default_rng(1)
    dtype = np.dtype([("ts", "i8"), ("seq", "i8")])
    sorter = Sorter(dtype, memory)
    everything = np.zeros(400_000, dtype)
    everything["ts"] = np.arange(400_000) // 3 - rng.choice(
        [0, 5, 100_000], 400_000, p=[0.9, 0.09, 0.01]
    )
    everything["seq"] = np.arange(400_000)
    for piece in np.split(everything, 40):
        sorter.add(piece)
    expected = np.sort(everything, order=["ts", "seq"])
    found = []
    for until in (-200_000, 0, 1, 1, 50_000, 133_000, 10**9):
        pieces = sorter.until(until)
        assert all(piece["ts"].max() <= until for piece in pieces)
        found += pieces
        left = np.searchsorted(expected["ts"], until, side="right")
        assert sum(map(len, found)) == left
    assert np.array_equal(np.concatenate(found), expected)


def test_records_in_batches_equal_records_of_the_whole_trace(
    recorded: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits and holds over several batches are reported like waits and holds in one batch."""
    from nptltrace.api import Traceset
    from nptltrace.export.writing import records as rec
    from nptltrace.export.writing.timeline import Timeline
    from nptltrace.trace.reading import prefetch

    def reported(batch: int) -> NDArray[Any]:
        monkeypatch.setattr(prefetch, "_BATCH", batch)
        batches = list(Timeline(Traceset(recorded("mix")), None, None).records(1 << 40))
        # Viewers get all ends and beginnings of the same time together.
        assert all(a["ts"][-1] < b["ts"][0] for a, b in pairwise(batches))
        return np.concatenate(batches)

    def sorted_bytes(records: NDArray[Any]) -> list[bytes]:
        # The order of reports decides the rows, so the rows may differ.
        records["lane"] = records["owner_lane"] = 0
        return sorted(record.tobytes() for record in records)

    pieces, whole = reported(97), reported(1 << 20)
    for records in (pieces, whole):
        assert (np.diff(records["ts"]) >= 0).all()
        for begin, end in (
            (rec.WAIT, rec.WAIT_END), (rec.HOLD, rec.HOLD_END), (rec.WAKE, rec.WOKEN),
        ):  # fmt: skip
            assert (records["what"] == begin).sum() == (records["what"] == end).sum() > 0
    assert sorted_bytes(pieces) == sorted_bytes(whole)


def test_depths_continue_from_batch_to_batch() -> None:
    from nptltrace.export.writing import records as rec
    from nptltrace.export.writing import timeline as tl

    rng = np.random.default_rng(2)
    records = np.zeros(1000, rec.RECORD)
    records["object"] = rng.integers(0, 5, 1000)
    now = dict.fromkeys(range(5), 0)
    expected = []
    for record in records:
        up = now[int(record["object"])] == 0 or rng.random() < 0.5
        record["what"] = rec.WAIT if up else rec.WAIT_END
        now[int(record["object"])] += 1 if up else -1
        expected.append(now[int(record["object"])])
    depths = tl.Depths(5)
    found = [depths.changes(piece)[1] for piece in np.split(records, 8)]
    assert np.concatenate(found).tolist() == expected
