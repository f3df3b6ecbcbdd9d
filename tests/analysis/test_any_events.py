"""Whatever a trace says, also what no program can do: the model does not contradict itself."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nptltrace.analysis import _native
from nptltrace.analysis.contention import contention
from nptltrace.analysis.model import model_tables
from nptltrace.catalog import EVENTS
from nptltrace.trace.source import Source
from tests.trace.builder import Builder, Event

T0 = 10**12
TYPES = [event for event in EVENTS if event.domain not in {"user", "c11", "process"}]

step = st.tuples(
    st.integers(0, 3),  # thread
    st.integers(0, 30_000),  # gap
    st.integers(0, len(TYPES) - 1),
    st.integers(0, 2),  # object
    st.sampled_from([0, 0, 0, 1, 2, 11, 110, 125, 130]),  # result, count, serial, owner
)
Steps = list[tuple[int, int, int, int, int]]


def write(path: Path, steps: Steps) -> Path:
    made = Builder(path)
    now, threads = T0, [made.thread(101 + n, []) for n in range(4)]
    for thread, gap, kind, number, value in steps:
        now += gap
        event = TYPES[kind]
        fields = {f.name: value for f in event.fields if f.type != "bytes"}
        if "owner" in fields and value:
            fields["owner"] = 100 + value % 5
        if "mutex" in fields:
            fields["mutex"] = 0x4040
        if "wait_ns" in fields:
            fields["wait_ns"] = gap
        threads[thread].packets[0].append(
            Event(now, event.name, 0x4040 + 64 * number, thread + 1, variant=event.variant,
                  fields=fields)
        )  # fmt: skip
    for one in threads:
        one.packets = [packet for packet in one.packets if packet]
    made.threads = [one for one in threads if one.packets]
    return made.write()


@settings(max_examples=150, deadline=None)
@given(st.lists(step, min_size=1, max_size=120))
def test_sums_are_those_of_the_rows(steps: Steps) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        trace = write(directory / "run.ptt", steps)
        tables = model_tables(Source([trace]))
        found = contention(Source([trace]), pairs=True)
    finally:
        shutil.rmtree(directory)
    waits = tables.waits.to_pylist()
    for name in _native.CLASSES:
        mine = [row["dur_ns"] for row in waits if row["class"] == name]
        figures = found.figures
        n, ns = (
            (figures.waits, figures.wait_ns)
            if name == "contended"
            else (figures.other_waits[name], figures.other_ns[name])
        )
        assert (n, ns) == (len(mine), sum(mine))
    held = tables.holds["dur_ns"].to_pylist()
    assert (found.figures.holds, found.figures.hold_ns) == (len(held), sum(held))
    assert all(row["dur_ns"] >= 0 for row in waits)
    threads = sum(thread.figures.wait_ns for thread in found.threads)
    assert threads == found.figures.wait_ns
    assert sum(pair.figures.wait_ns for pair in found.pairs) == found.figures.wait_ns
    path = found.path
    parts = sum(part.run_ns + part.wake_ns + part.wait_ns for part in path.threads)
    assert parts <= path.end_ns - path.start_ns
