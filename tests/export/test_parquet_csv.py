"""Parquet and CSV keep every row, as other readers of these formats see them."""

from __future__ import annotations

import csv
import io
import json
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import nptltrace
import nptltrace.export
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.errors import one_line
from nptltrace.export import FORMATS, Export, load_format, parquet
from nptltrace.export.writing.target import Target
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt


@pytest.fixture(params=["mix", "hostile"])
def trace(request: pytest.FixtureRequest, recorded: Callable[[str], Path]) -> Path:
    return recorded(request.param)


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


def by_stack(waits: Any) -> list[tuple[str, str, int]]:
    columns = [waits[name].to_pylist() for name in ("run_id", "stack_id", "dur_ns")]
    return sorted(zip(*columns, strict=True))


def test_parquet_keeps_every_row(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    done = ptt("export", "--to", "parquet", "-o", out, trace)
    traces = nptltrace.open(trace)
    rows = 0
    for name in TABLES:
        (path,) = (out / f"dataset={name}").glob("day=*/host=*/run=*/part-0.parquet")
        found = pyarrow.parquet.ParquetFile(path).read()
        expected = traces.table(name, TABLES[name].names)
        assert found.schema.metadata == expected.schema.metadata
        for field in expected.schema:
            there = found.schema.field(field.name)
            assert there.metadata[b"meaning"] == field.metadata[b"meaning"]
            assert there.type == field.type or pa.types.is_list(field.type)
        assert in_order(found.to_pylist()) == in_order(expected.to_pylist()), name
        rows += found.num_rows
    assert f"wrote {rows} rows of {len(TABLES)} tables to {out}" in done.stderr
    assert traces.table("waits").num_rows > 0
    assert traces.table("wakeups").num_rows > 0


def test_other_readers_read_parquet(
    ptt: Ptt, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    trace, out = recorded("mix"), tmp_path / "run.parquet"
    ptt("export", "--to", "parquet", "-o", out, trace)
    traces = nptltrace.open(trace)
    for name in ("waits", "wakeups", "events"):
        files = str(out / f"dataset={name}" / "**" / "*.parquet")
        count, run = duckdb.execute(
            "select count(*), any_value(run) from read_parquet(?, hive_partitioning = true)",
            [files],
        ).fetchall()[0]
        assert count == traces.table(name).num_rows
        assert run == traces.table("runs")["run_id"][0].as_py()
        partitioned = pyarrow.dataset.dataset(out / f"dataset={name}", partitioning="hive")
        assert partitioned.count_rows() == count
        assert {"day", "host", "run"} <= set(partitioned.schema.names)


def test_row_groups_are_sorted(
    recorded: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_ROW_GROUP", 1000)
    trace = recorded("hostile")
    traces = nptltrace.open(trace)
    what = Export(traces, Symbols(traces), Scope())
    load_format("parquet").write(what, Target(tmp_path / "out"))
    (path,) = tmp_path.glob("out/dataset=events/*/*/*/*.parquet")
    file = pyarrow.parquet.ParquetFile(path)
    events = traces.table("events").num_rows
    assert file.metadata.num_rows == events
    assert file.metadata.num_row_groups <= events // 1000 + 1
    for number in range(file.metadata.num_row_groups):
        group = file.read_row_group(number, ["pid", "ts_ns"]).to_pylist()
        keys = [(row["pid"], row["ts_ns"]) for row in group]
        assert keys == sorted(keys)


def test_exports_of_runs_make_a_fleet(
    ptt: Ptt, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    """Runs exported together have the same rows as runs exported one by one."""
    both = [recorded("mix"), recorded("hostile")]
    ptt("export", "--to", "parquet", "--table", "waits,sites", "-o", tmp_path / "one", *both)
    for trace in both:
        ptt("export", "--to", "parquet", "--table", "waits,sites", "-o", tmp_path / "x", trace,
            "--force")  # fmt: skip
        (path,) = (tmp_path / "x").glob("dataset=waits/*/*/run=*/part-0.parquet")
        same = tmp_path / "one" / path.relative_to(tmp_path / "x")
        alone = pyarrow.parquet.ParquetFile(path).read(["run_id", "dur_ns", "stack_id"])
        together = pyarrow.parquet.ParquetFile(same).read(["run_id", "dur_ns", "stack_id"])
        # Whole ns are counted from the first event of all traces, so times may differ by 1 ns.
        for one, other in zip(by_stack(alone), by_stack(together), strict=True):
            assert one[:2] == other[:2]
            assert abs(one[2] - other[2]) <= 1
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "dataset=sites", "dataset=waits",
    ]  # fmt: skip


def test_csv_keeps_every_row(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    ptt("export", "--to", "csv", "-o", out, trace)
    traces = nptltrace.open(trace)
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{name}.csv" for name in TABLES)
    for name, table in TABLES.items():
        with (out / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        expected = traces.table(name, table.names)
        assert header == table.names
        assert len(rows) == expected.num_rows
        for column in ("dur_ns", "ts_ns", "tid", "name", "class"):
            if column in header:
                values = ["" if v is None else str(v) for v in expected[column].to_pylist()]
                assert [row[header.index(column)] for row in rows] == values, (name, column)
    edges = traces.table("edges")["guard_set"].to_pylist()
    with (out / "edges.csv").open(newline="", encoding="utf-8") as file:
        assert [json.loads(row["guard_set"]) for row in csv.DictReader(file)] == edges


def test_one_table_to_standard_output(
    ptt: Ptt, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    trace = recorded("mix")
    done = ptt("-q", "export", "--to", "csv", "--table", "wakeups", "-o", "-", trace)
    wakeups = nptltrace.open(trace).table("wakeups").num_rows
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == wakeups
    ptt("export", "--to", "csv", "--table", "wakeups", "-o", tmp_path / "w.csv", trace)
    assert (tmp_path / "w.csv").read_text() == done.stdout


def test_a_part_of_the_trace_is_exported(
    ptt: Ptt, recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    trace = recorded("mix")
    times = nptltrace.open(trace).table("events")["ts_ns"].to_pylist()
    begin, end = times[len(times) // 3], times[len(times) // 2]
    window = ("--from", f"{begin}ns", "--until", f"{end}ns")
    out = tmp_path / "part.csv"
    ptt("export", "--to", "csv", "--table", "events", "-o", out, *window, trace)
    with out.open(newline="", encoding="utf-8") as file:
        found = [int(row["ts_ns"]) for row in csv.DictReader(file)]
    assert found == [t for t in times if begin <= t < end]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--to", "csv", "-o", "-"), "standard output takes one table"),
        (("--to", "parquet", "-o", "-"), "cannot write a directory to standard output"),
        (("--to", "csv", "--table", "wait", "-o", "x"), "no table 'wait'"),
        (("--to", "chrome", "--table", "waits", "-o", "x"), "--table means nothing to chrome"),
        (("--to", "csv", "-o", "full"), "full is not empty (--force replaces it)"),
        (("--to", "csv", "--table", "waits", "-o", "full"), "full is a directory"),
        (("--to", "nonsense", "-o", "x"), "nonsense"),
        (("--to", "csv", "-o", "no/such/x"), "no/such"),
    ],
)
def test_errors_are_one_line(
    ptt: Ptt, recorded: Callable[[str], Path], tmp_path: Path, arguments: tuple[str, ...], what: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    done = ptt("export", *arguments, recorded("mix"), status=2, cwd=tmp_path)
    assert what in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert (tmp_path / "full" / "mine").read_text() == "mine"


def test_no_unfinished_file_stays(
    recorded: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = nptltrace.open(recorded("mix"))

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet._File, "write", fail)
    what = Export(traces, Symbols(traces), Scope())
    with pytest.raises(OSError, match="No space left") as failed:
        load_format("parquet").write(what, Target(tmp_path / "out"))
    assert one_line(failed.value) == f"{tmp_path / 'out'}: No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_formats_are_listed(ptt: Ptt) -> None:
    modules = {m.name for m in iter_modules(nptltrace.export.__path__) if not m.ispkg}
    assert modules == FORMATS.keys()
    text = ptt("export", "--help").stdout
    assert all(f"  {name:<10} {summary}" in text for name, summary in FORMATS.items())
    with pytest.raises(nptltrace.UsageError, match="no format 'nothing'"):
        load_format("nothing")
