"""What the exporters to viewers share: rows without overlaps, records in the order of time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

_SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(_SPANS)
def test_lanes_keep_intervals_apart(spans: list[tuple[int, int, int]]) -> None:
    from nptltrace.analysis._native import Lanes

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


def test_nested_holds_need_as_many_lanes_as_they_are_deep() -> None:
    from nptltrace.analysis._native import Lanes

    begin, end = [], []
    for start in range(0, 10_000, 100):  # hand over hand within a longer one
        begin += [start + 1, start + 10, start + 20, start]
        end += [start + 15, start + 25, start + 30, start + 90]
    lanes = Lanes()
    lanes.place(np.zeros(len(begin)), np.array(begin), np.array(end))
    assert len(lanes.table()) == 3


@pytest.mark.parametrize("memory", [0, 1 << 20, 1 << 30])
def test_sorting_is_stable_and_complete(memory: int) -> None:
    from nptltrace.export._sorting import Sorter

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
    early = np.array([(50_000, -2), (0, -1)], dtype)
    sorter.add(early, first=True)
    found = np.concatenate(list(sorter.batches()))
    expected = np.sort(np.concatenate([early, everything]), order=["ts", "seq"])
    assert np.array_equal(found, expected)


def test_depths_go_on_from_piece_to_piece() -> None:
    from nptltrace.export import _timeline as tl

    rng = np.random.default_rng(2)
    records = np.zeros(1000, tl.RECORD)
    records["object"] = rng.integers(0, 5, 1000)
    now = dict.fromkeys(range(5), 0)
    expected = []
    for record in records:
        up = now[int(record["object"])] == 0 or rng.random() < 0.5
        record["what"] = tl.WAIT if up else tl.WAIT_END
        now[int(record["object"])] += 1 if up else -1
        expected.append(now[int(record["object"])])
    depths = tl.Depths(5)
    found = [depths.after(piece, np.ones(len(piece), bool)) for piece in np.split(records, 8)]
    assert np.concatenate(found).tolist() == expected
