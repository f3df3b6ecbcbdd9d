"""The model contradicts itself for no trace, not even for a trace that no program can make."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from nptltrace.analysis.model import model_tables
from nptltrace.analysis.report.contention import contention
from nptltrace.api import Traceset
from nptltrace.catalog.tables import WAIT_CLASSES
from tests.analysis.any_events import any_steps, write_steps

if TYPE_CHECKING:
    from tests.analysis.any_events import Steps

STEPS = any_steps(
    without={"user", "c11", "process"},
    gaps=st.integers(0, 30_000),
    values=[0, 0, 0, 1, 2, 11, 110, 125, 130],
    most=120,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_sums_are_the_sums_of_the_rows(steps: Steps) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        trace = write_steps(directory / "run.ptt", steps)
        tables = model_tables(Traceset(trace))
        report = contention(Traceset(trace), pairs=True)
    finally:
        shutil.rmtree(directory)
    waits = tables.waits.to_pylist()
    for name in WAIT_CLASSES:
        mine = [row["dur_ns"] for row in waits if row["class"] == name]
        figures = report.figures
        n, ns = (
            (figures.waits, figures.wait_ns)
            if name == "contended"
            else (figures.other_waits[name], figures.other_ns[name])
        )
        assert (n, ns) == (len(mine), sum(mine))
    held = tables.holds["dur_ns"].to_pylist()
    assert (report.figures.holds, report.figures.hold_ns) == (len(held), sum(held))
    assert all(row["dur_ns"] >= 0 for row in waits)
    threads = sum(thread.figures.wait_ns for thread in report.threads)
    assert threads == report.figures.wait_ns
    assert sum(pair.figures.wait_ns for pair in report.pairs) == report.figures.wait_ns
    path = report.path
    parts = sum(part.run_ns + part.latency_ns + part.open_ns for part in path.threads)
    assert parts <= path.end_ns - path.start_ns
