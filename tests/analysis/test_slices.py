"""Slices of time, each from a saved state, have the rows of one model over all events."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding import libpttread
from nptltrace.analysis.cutting import write_cut
from nptltrace.analysis.model import ROW_TABLES, model_batches
from nptltrace.analysis.model_slices import cuts, rows_of_slice, tables_and_states
from nptltrace.api import Traceset
from nptltrace.errors import PttError, UsageError
from nptltrace.trace.copying import Part
from nptltrace.trace.reading import prefetch
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from nptltrace._binding import libptttrack_sums
    from tests.support import Compiler, Recorder

pytestmark = pytest.mark.usefixtures("native_in_process")

ROWS = (*ROW_TABLES, "states", "hold_samples")


def lists(pieces: Iterable[tuple[str, pa.Table]]) -> dict[str, list[Any]]:
    """Return the rows of each table."""
    found: dict[str, list[Any]] = {}
    for name, table in pieces:
        found.setdefault(name, []).extend(table.to_pylist())
    return {name: rows for name, rows in found.items() if rows}


def sliced(source: Traceset, times: Sequence[int], place: Path) -> dict[str, list[Any]]:
    """Return all rows; a separate model makes each slice."""
    states: dict[int, bytes] = {}

    def save(number: int, model: libptttrack_sums.Model) -> None:
        with (place / "state").open("wb") as file:
            model.save(file.fileno())
        states[number] = (place / "state").read_bytes()

    pieces = list(tables_and_states(source, ROWS, times, save))
    for number in range(len(times) + 1):
        pieces += rows_of_slice(source, ROWS, times, number, states.get(number))
    return lists(pieces)


def check(trace: Path, place: Path) -> dict[str, list[Any]]:
    """Compare slices of a trace with the whole of it, and return the rows."""
    source = Traceset(trace)
    source.names.learn()
    expected = lists(model_batches(source, ROWS))
    first, end = (source.reader.time_of_key(key) for key in source.reader.key_range() or ())
    choose = random.Random(1)  # noqa: S311
    for count in (1, 2, 7, 60):
        anywhere = sorted(choose.sample(range(first, end), count))
        for times in (cuts(source, count), anywhere):
            found = sliced(source, times, place)
            for name, rows in expected.items():
                assert found[name] == rows, (name, times)
            assert found.keys() == expected.keys()
    return expected


@pytest.mark.parametrize(
    "options",
    [("-l", "2"), ("-l", "3"), ("--handler", "shared"), ("--stacks", "all"), ("--sched", "perf")],
)
def test_slices_of_a_bit_of_everything(
    options: tuple[str, ...],
    program: Callable[[str], Path],
    record: Recorder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetch, "_BATCH", 64)
    rows = check(record(program("mix"), "3", "60", options=options), tmp_path)
    assert rows["waits"]
    assert rows["holds"]


def test_slices_of_readings_of_the_scheduler(
    program: Callable[[str], Path], record: Recorder, tmp_path: Path
) -> None:
    check(record(program("sched"), options=("-l", "2")), tmp_path)


@pytest.mark.parametrize("how", ["anonymous", "named"])
def test_slices_of_processes_that_share_memory(
    how: str, compile_c: Compiler, record: Recorder, tmp_path: Path
) -> None:
    built = compile_c(ROOT / "tests" / "analysis" / "two_processes.c")
    rows = check(record(built, how, "20"), tmp_path)
    assert sum(row["kind"] == "mutex" for row in rows["objects"]) == 1
    assert len({row["process"] for row in rows["holds"]}) == 2


def test_a_damaged_state_and_a_part_of_a_recording_are_refused(
    program: Callable[[str], Path], record: Recorder, tmp_path: Path
) -> None:
    trace = record(program("mix"), "3", "20")
    source = Traceset(trace)
    end = source.end_ns() or 0
    for state in (b"", b"x" * 1000):
        with pytest.raises(PttError, match="state of slice 1 is damaged"):
            list(rows_of_slice(source, ROWS, [end // 2], 1, state))
    part = tmp_path / "part.ptt"
    cursor = libpttread.Cursor(source.reader)
    cursor.seek_key(source.reader.key_of_time(end // 3))
    write_cut(source, part, Part(cursor.place(), begin_ns=end // 3))
    with pytest.raises(UsageError, match="part of a recording"):
        cuts(Traceset(part), 2)
