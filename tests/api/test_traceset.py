"""`Traceset`, as scripts and notebooks use it."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import nptltrace
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.errors import ClosedError, UsageError
from nptltrace.ui.shapes import fits
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support import Ptt

# Tables with the names of methods and properties.
METHODS = {"events", "findings", "processes", "threads"}

pytestmark = pytest.mark.usefixtures("native_in_process")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Any) -> Path:
    path = tmp_path_factory.mktemp("api") / "run.ptt"
    ptt("record", "-o", path, "-l", "3", "--", program("mix"), "5", "60")
    return path


@pytest.fixture
def ts(trace: Path, native_in_process: None) -> Iterator[nptltrace.Traceset]:
    del native_in_process
    with nptltrace.open(trace) as opened:
        yield opened


def printed(ptt: Ptt, *arguments: Any) -> Any:
    return json.loads(ptt(*arguments, "--format", "json", status=None).stdout)


def test_a_traceset_prints_its_contents(ts: nptltrace.Traceset, trace: Path) -> None:
    text, html = repr(ts), ts._repr_html_()
    events = ts.stat()["events"]
    assert text.startswith(f"<Traceset {trace}: {events:,} events")
    assert f"{events:,}" in html
    assert "<table>" in html
    assert ts.start <= ts.end
    assert ts.duration == ts.end - ts.start == ts.stat()["duration_ns"]


def test_batches_do_not_import_pandas(trace: Path, ptt: Ptt) -> None:
    """The import of pandas takes a quarter of a second."""
    code = (
        "import sys, nptltrace; sum(b.num_rows for b in nptltrace.open(sys.argv[1]).batches()); "
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, trace], env=ptt.environment(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "False\n"


def test_markup_in_a_path_is_escaped(trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "<script>"
    odd.symlink_to(trace)
    assert "<script>" not in nptltrace.open(odd)._repr_html_()


def test_documents_equal_the_output_of_the_commands(
    ts: nptltrace.Traceset, trace: Path, ptt: Ptt
) -> None:
    from nptltrace.analysis.vocabulary import document_types as types

    assert ts.stat() == printed(ptt, "stat", trace)
    for by in ("object", "site", "thread,object"):
        assert ts.report(by=by) == printed(ptt, "report", "--by", by, trace)
    assert ts.check(long_hold_ns=1000) == printed(ptt, "check", "--long-hold", "1us", trace)
    found = ts.diff(ts, by="object")
    assert fits(types.Diff, found)
    assert found["total"]["wait_ns"]["before"] == found["total"]["wait_ns"]["after"]


def test_arguments_choose_the_same_part_as_options(
    ts: nptltrace.Traceset, trace: Path, ptt: Ptt
) -> None:
    (process,) = ts.stat()["processes"]
    tids = [thread["tid"] for thread in process["threads"]][:2]
    chosen = ["--tid", ",".join(map(str, tids)), "--from", "5ms", "--to", "20ms"]
    part: dict[str, Any] = {"tid": tids, "start_ns": 5_000_000, "end_ns": 20_000_000}
    assert ts.report(**part) == printed(ptt, "report", *chosen, trace)
    assert ts.stat(**part) == printed(ptt, "stat", *chosen, trace)
    assert ts.check(long_hold_ns=1000, **part) == printed(
        ptt, "check", "--long-hold", "1us", *chosen, trace
    )
    lock = next(item for item in ts.report()["objects"] if item["name"].startswith("plain"))
    assert [item["object"] for item in ts.report(object=lock["object"])["objects"]] == [
        lock["object"]
    ]
    assert ts.report(object=["plain", "rwlock"], pid=process["pid"])["objects"]


def test_methods_and_sql_use_the_same_table_names(ts: nptltrace.Traceset) -> None:
    assert ts.tables == list(TABLES)
    for name in ("events", "threads", "findings"):
        assert getattr(ts, name)().equals(ts.table(name)), name
    events = ts.events()
    assert set(events.column_names) <= set(TABLES["events"].names)
    assert events.num_rows == ts.stat()["events"]
    few = ts.events(5_000_000, 9_000_000, fields=["wait_ns"])
    assert (
        few.equals(
            ts.sql(
                f"select {', '.join(few.column_names)} from events "  # noqa: S608 -- of our own
                "where ts_ns >= $1 and ts_ns < $2",
                [5_000_000, 9_000_000],
            ).cast(few.schema)
        )
        or few.num_rows
        == ts.sql(
            "select count(*) as n from events where ts_ns >= $1 and ts_ns < $2",
            [5_000_000, 9_000_000],
        )["n"][0].as_py()
    )
    assert events.column("ts_ns").equals(pa.concat_tables(ts.batches())["ts_ns"])


def test_dictionaries_have_only_the_keys_of_their_types(ts: nptltrace.Traceset) -> None:
    for name in ts.tables:
        table = ts.table(name)
        for column in table.schema:
            if pa.types.is_dictionary(column.type):
                whole = table[column.name].combine_chunks()
                words = whole.dictionary if isinstance(whole, pa.DictionaryArray) else None
                if words is not None:
                    assert set(words.to_pylist()) == set(whole.to_pylist()) - {None}, column.name


def test_queries_take_parameters(ts: nptltrace.Traceset) -> None:
    count = "select count(*) as n from waits where class = {} and dur_ns >= {}"
    (wanted,) = ts.sql(count.format("'contended'", "1000"))["n"].to_pylist()
    for query, params in (
        (count.format("?", "?"), ["contended", 1000]),
        (count.format("$2", "$1"), (1000, "contended")),
        (count.format("$class", "$least"), {"class": "contended", "least": 1000, "more": 1}),
    ):
        assert ts.sql(query, params)["n"].to_pylist() == [wanted], query
    ts.sql("create temp table few as from waits where dur_ns > ?; select 1", [5])
    # Parameters are only values: no text in them runs as SQL.
    assert ts.sql("select ? as text", ["'; drop table few"])["text"].to_pylist() == [
        "'; drop table few"
    ]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda ts: ts.table("wait"), "no table 'wait'; did you mean waits"),
        (lambda ts: ts.table("nothing_like_it"), "there are runs, processes"),
        (lambda ts: ts.table("waits", ["dur"]), "has no column 'dur'; did you mean dur_ns?"),
        (lambda ts: ts.table("waits", "kind"), "columns must be a list of names"),
        (lambda ts: ts.events(fields=["wait_n"]), "no event has a field wait_n; did you mean"),
        (lambda ts: ts.events(1.5), "a time is a whole number of ns"),
        (lambda ts: ts.read(until=0.5), "a time is a whole number of ns"),
        (lambda ts: ts.seek("now"), "a time is a whole number of ns"),
        (lambda ts: ts.report(by="lock"), "by is one of object, thread"),
        (lambda ts: ts.report(tid="x"), "--tid takes numbers"),
        (lambda ts: ts.report(object="no_such"), "no global variable, alias or lock"),
        (lambda ts: ts.diff(ts, by="pid"), "by is one of site"),
        (lambda ts: ts.diff(ts, per="NO"), "expected run, second or an event type"),
        (lambda ts: ts.export("xml", "out"), "no format 'xml'"),
        (lambda ts: ts.export("chrome", "out", tables=["waits"]), "tables means nothing"),
        (lambda ts: ts.sql("select ?", []), "Values were not provided"),
        (lambda ts: ts.sql("select ?", "a"), "params must be a list of values"),
    ],
)
def test_wrong_arguments_are_reported(
    ts: nptltrace.Traceset, ask: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?").split("'x")[0][:40]):
        ask(ts)


def test_reading_on_works_by_both_of_its_names(ts: nptltrace.Traceset) -> None:
    ts.seek(5_000_000)
    here = ts.position()
    assert ts.position_save() == here
    some = ts.read(max_events=10)
    there = ts.position()
    assert some.num_rows == 10
    ts.seek(here)
    assert ts.read(until=there).equals(some)
    ts.seek_position(here)
    assert ts.middle_position(there).equals(some)
    ts.seek_time(5_000_000)
    until = ts.end // 2
    reported = ts.middle_time(until)
    ts.seek(5_000_000)
    assert ts.read(until).equals(reported)


def test_export_writes_files(ts: nptltrace.Traceset, tmp_path: Path, trace: Path, ptt: Ptt) -> None:
    path = ts.export("csv", tmp_path / "waits.csv", tables=["waits"], end_ns=20_000_000)
    wanted = ptt(
        "export", "--format", "csv", "--table", "waits", "-o", "-", "--to", "20ms", trace
    ).stdout
    assert path.read_text() == wanted
    with pytest.raises(UsageError, match=r"waits\.csv"):
        ts.export("csv", path, tables=["waits"])
    assert ts.export("chrome", tmp_path / "t.json").stat().st_size > 0


def test_a_traceset_closes(trace: Path) -> None:
    with nptltrace.open(trace) as ts:
        kept, position = ts.events(), ts.position()
        ts.sql("from waits limit 1")
    assert ts.closed
    ts.close()
    assert "closed" in repr(ts)
    assert "closed" in ts._repr_html_()
    assert kept.num_rows > 0
    for ask in (
        ts.read, ts.events, ts.report, ts.stat,
        lambda: ts.sql("from waits"), lambda: ts.seek(position), lambda: ts.duration,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_the_package_has_its_public_names() -> None:
    public = [name for name in dir(nptltrace) if not name.startswith("_")]
    for name in ("open", "record", "Traceset", "Position", "is_traced", "user_event"):
        assert name in public
    for name in ("Any", "TYPE_CHECKING", "annotations"):
        assert name not in public
    assert "level" in inspect.signature(nptltrace.record).parameters


# ---- what users type first ----


def test_tables_and_views_are_attributes_and_items(ts: nptltrace.Traceset) -> None:
    pytest.importorskip("pandas")
    views = [view.name for view in VIEWS if view.parameters is None]
    assert list(ts) == [*TABLES, *views]
    for name in ts:
        table = ts[name]
        assert table.num_rows == ts.sql(f'select count(*) as n from "{name}"')["n"][0].as_py()  # noqa: S608 -- of our own
        assert list(table.to_pandas().columns) == table.column_names
        if name not in METHODS:
            assert getattr(ts, name).column_names == table.column_names, name
    assert ts.waits == ts["waits"] == ts.table("waits")
    assert ts.waits.num_rows == len(ts.waits.to_pandas()) > 0
    assert ts.named_waits.num_rows == ts["named_waits"].num_rows == ts.waits.num_rows
    assert ts.table("named_waits", ["thread_name"]).column_names == ["thread_name"]
    with pytest.raises(AttributeError, match="waitz"):
        ts.waitz  # noqa: B018
    with pytest.raises(UsageError, match="did you mean waits"):
        ts["waitz"]
    with pytest.raises(UsageError, match=r"such as \['dur_ns'\]"):
        ts.table("waits", "dur_ns")


def test_dir_lists_what_users_may_use(ts: nptltrace.Traceset) -> None:
    """The documentation describes each name, and the page of tables describes each table."""
    listed = set(dir(ts)) - set(ts)
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    inherited = set(re.findall(r"^   \.\. auto(?:method|property):: (\w+)", page, re.MULTILINE))
    attributes = set(
        re.findall(r"^ +(\w+): ", inspect.getdoc(nptltrace.Traceset) or "", re.MULTILINE)
    )
    own = {name for name in vars(nptltrace.Traceset) if not name.startswith("_")}
    assert listed == (own | inherited | attributes) - METHODS
    for name in sorted(listed):
        member = inspect.getattr_static(nptltrace.Traceset, name, None)
        assert name in attributes or inspect.getdoc(member), name
        getattr(ts, name)


def test_values_from_tables_choose_parts(ts: nptltrace.Traceset) -> None:
    row = ts.named_waits.slice(0, 1)
    tid, address = row["tid"][0], row["object"][0].as_py()
    number = tid.as_py()
    own = ts.report(tid=number)
    assert ts.report(tid=tid) == ts.report(tid=np.int64(number)) == own
    assert ts.report(tid=row["tid"]) == ts.report(tid=np.array([number])) == own
    assert ts.report(object=int(address)) == ts.report(object=hex(address))
    count = ts.sql("select count(*) as n from waits where tid = ?", [np.int64(number)])
    assert ts.sql("select count(*) as n from waits where tid = $t", {"t": tid}) == count
    assert ts.sql("select count(*) as n from waits", tid=tid) == count
    assert ts.table("waits", tid=tid).num_rows == count["n"][0].as_py()
    assert ts.threads(tid=tid)["tid"].to_pylist() == [number]


def test_every_method_takes_the_same_part(ts: nptltrace.Traceset) -> None:
    """A window, processes, threads, objects and call sites, as the tables contain them."""
    choices = {"start_ns", "end_ns", "pid", "tid", "object", "site"}
    for ask in (
        ts.stat, ts.report, ts.check, ts.diff, ts.table, ts.table_batches, ts.events, ts.findings,
        ts.sql, ts.export,
    ):  # fmt: skip
        assert choices <= set(inspect.signature(ask).parameters), ask
    row = ts.sql("from named_waits where object is not null and site is not null limit 1")
    numbers = {name: row[name].to_numpy()[0] for name in ("t_ns", "tid", "object")}
    part: dict[str, Any] = {
        "start_ns": numbers["t_ns"], "end_ns": numbers["t_ns"] + np.int64(1_000_000),
        "pid": row["pid"], "tid": numbers["tid"], "object": numbers["object"],
        "site": row["site"][0],
    }  # fmt: skip
    same = {
        "start_ns": int(numbers["t_ns"]), "end_ns": int(numbers["t_ns"]) + 1_000_000,
        "pid": row["pid"][0].as_py(), "tid": int(numbers["tid"]),
        "object": hex(numbers["object"]), "site": row["site"][0].as_py(),
    }  # fmt: skip
    assert ts.stat(**part) == ts.stat(**same)
    assert ts.report(**part) == ts.report(**same)
    assert ts.check(**part) == ts.check(**same)
    assert ts.diff(ts, **part) == ts.diff(ts, **same)
    assert ts.findings(**part).equals(ts.findings(**same))
    for name in ("waits", "named_waits", "events"):
        assert ts.table(name, **part).equals(ts.table(name, **same)), name
    waits = ts.table("waits", **same)
    assert pa.concat_tables(ts.table_batches("waits", **part)).num_rows == waits.num_rows > 0
    assert ts.sql("from waits", **part).num_rows == waits.num_rows
    events = ts.events(fields=[], **part)
    assert 0 < events.num_rows < ts.events(part["start_ns"], part["end_ns"]).num_rows
    assert set(events["tid"].to_pylist()) == {same["tid"]}


def test_a_window_limits_tables(ts: nptltrace.Traceset) -> None:
    middle = (ts.start + ts.end) // 2
    first = ts.sql("select sum(dur_ns) as ns from waits", end_ns=middle)["ns"][0].as_py()
    second = ts.sql("select sum(dur_ns) as ns from waits", start_ns=middle)["ns"][0].as_py()
    assert (first or 0) + (second or 0) == sum(ts.waits["dur_ns"].to_pylist())
    assert ts.table("events", end_ns=middle).num_rows < ts.events().num_rows
    assert ts.findings(end_ns=0).num_rows == 0


def test_kinds_choose_findings(ts: nptltrace.Traceset) -> None:
    assert ts.check(kind="deadlock")["findings"] == []
    with pytest.raises(UsageError, match="there is no kind 'dead-lock'"):
        ts.check(kind="dead-lock")
    assert ts.check(ignore="*")["findings"] == []


def test_a_wrong_or_empty_part_is_reported(ts: nptltrace.Traceset) -> None:
    with pytest.raises(UsageError, match="lies before start_ns"):
        ts.report(start_ns=200, end_ns=100)
    with pytest.raises(UsageError, match="is an empty list"):
        ts.report(tid=[])
    with pytest.raises(UsageError, match="takes numbers or text"):
        ts.report(tid=[1.5])  # type: ignore[list-item]
    with pytest.warns(UserWarning, match="nothing matches pid and tid"):
        ts.report(tid=2**22 + 1)


def test_errors_of_a_closed_traceset_name_the_trace(trace: Path) -> None:
    opened = nptltrace.open(trace)
    opened.close()
    for use in (opened.report, opened.stat, opened.read, opened.position, opened.threads):
        with pytest.raises(ClosedError, match=f"{trace} is closed"):
            use()


def test_diff_takes_a_part(ts: nptltrace.Traceset) -> None:
    middle = (ts.start + ts.end) // 2
    parts = [ts.diff(ts, by="object"), ts.diff(ts, by="object", end_ns=middle)]
    whole, first = (part["total"]["elapsed_ns"]["before"] for part in parts)
    assert first < whole
    with pytest.raises(UsageError, match="lies before start_ns"):
        ts.diff(ts, start_ns=2, end_ns=1)
