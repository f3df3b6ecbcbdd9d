"""The tables of a trace: declared columns, consistent keys, and the same rows in pieces."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nptltrace
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.findings import findings
from nptltrace.analysis.model import ROW_TABLES, Window, model_tables
from nptltrace.analysis.question_scope import Scope
from nptltrace.analysis.sql import tables as made
from nptltrace.analysis.sql.query import Database
from nptltrace.analysis.sql.schema import SCHEMA_VERSION, TABLES
from nptltrace.cli.pages import tables_page
from nptltrace.trace.traceset import Traceset
from tests.analysis.story import MAIN, Story, pthread
from tests.support import ROOT
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

T0 = 10**12
A, B = 0x4040, 0x4080


def keys(table: pa.Table, *columns: str) -> set[Any]:
    """Return the values of some columns, without nulls."""
    rows = zip(*(table[column].to_pylist() for column in columns), strict=True)
    return {row for row in rows if None not in row}


def taken(ts: int, lock: int) -> Event:
    return Event(T0 + ts, "MUTEX_TAKEN", lock, 5)


def wait(ts: int, lock: int, owner: int) -> Event:
    return Event(T0 + ts, "MUTEX_WAIT", lock, 7, fields={"owner": owner})


def chain(path: Path) -> Path:
    """Thread 3 waits for a lock of thread 2, and thread 2 waits for a lock of thread 1."""
    trace = Builder(path)
    trace.thread(1, [taken(0, A), Event(T0 + 900, "MUTEX_FREE", A, 6)])
    trace.thread(2, [taken(10, B), wait(20, A, 1)])
    trace.thread(3, [wait(30, B, 2)])
    trace.processes = [
        {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x", "a b"]}},
        {"sites": {"process": 0, "sites": {"5": "0x401000", "6": "0x401010", "7": "0x401020"}}},
    ]
    return trace.write()


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Callable[[str], Path]
) -> list[Path]:
    """Two recordings of one program that does something of everything."""
    paths = []
    for number in range(2):
        path = tmp_path_factory.mktemp("recorded") / f"{number}.ptt"
        ptt("record", "-o", path, "--", program("mix"))
        paths.append(path)
    return paths


@pytest.fixture(params=[1, 2])
def tables(request: pytest.FixtureRequest, recorded: list[Path]) -> dict[str, pa.Table]:
    """All tables of one trace, and of two at once."""
    traces = nptltrace.open(*recorded[: request.param])
    return {name: traces.table(name, TABLES[name].names) for name in TABLES}


def test_tables_are_as_declared(tables: dict[str, pa.Table]) -> None:
    runs = keys(tables["runs"], "run_id")
    for name, table in tables.items():
        assert table.schema.equals(TABLES[name].schema(), check_metadata=True), name
        table.validate(full=True)
        assert table["run_id"].null_count == 0
        assert keys(table, "run_id") <= runs
    for name in ("events", "waits", "holds", "threads", "objects", "sites"):
        assert keys(tables[name], "run_id") == runs, name
    for run in tables["runs"].to_pylist():
        mine = pc.equal(tables["events"]["run_id"].cast(pa.string()), run["run_id"])
        assert pc.sum(mine).as_py() == run["events"]


def test_keys_fit_together(tables: dict[str, pa.Table]) -> None:
    def has(name: str, *columns: str) -> set[Any]:
        return keys(tables[name], "run_id", *columns)

    assert len(has("objects", "lock_id")) == tables["objects"].num_rows
    assert len(has("waits", "wait_id")) == tables["waits"].num_rows
    for name in ("waits", "holds", "wakeups"):
        assert has(name, "lock_id") <= has("objects", "lock_id")
    assert has("wakeups", "wait_id") <= has("waits", "wait_id")
    for name in ("waits", "holds", "events", "modules", "objects"):
        assert has(name, "process", "pid") <= has("processes", "process", "pid")
    for name in ("waits", "holds"):
        assert has(name, "process", "tid") <= has("threads", "process", "tid")


def test_call_sites_are_there(tables: dict[str, pa.Table]) -> None:
    stacks = keys(tables["stacks"], "run_id", "stack_id")
    assert keys(tables["stacks"], "run_id", "site_id") <= keys(tables["sites"], "run_id", "site_id")
    named = [
        (name, column)
        for name, table in TABLES.items()
        for column in table.names
        if "stack" in column and name != "stacks"
    ]
    assert ("waits", "stack_id") in named
    for name, column in named:
        assert keys(tables[name], "run_id", column) <= stacks, (name, column)


def test_tables_have_the_rows_of_the_model(recorded: list[Path]) -> None:
    traces = nptltrace.open(recorded[0])
    model = model_tables(traces)
    for name in ("waits", "holds", "wakeups", "edges", "threads", "objects"):
        assert traces.table(name).num_rows == getattr(model, name).num_rows
    waits = traces.table("waits")
    assert waits["dur_ns"].equals(model.waits["dur_ns"])
    assert waits["class"].cast(pa.string()).equals(model.waits["class"].cast(pa.string()))
    assert waits.num_rows > 0
    assert traces.table("wakeups").num_rows > 0


def test_pieces_have_the_rows_of_the_tables(
    recorded: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = nptltrace.open(*recorded)
    whole = all_tables(traces)
    parts: dict[str, list[pa.Table]] = {}
    for name, piece in all_tables(traces).pieces(list(TABLES)):
        parts.setdefault(name, []).append(piece)
    assert parts.keys() == TABLES.keys()
    for name, pieces in parts.items():
        assert pa.concat_tables(pieces).to_pylist() == whole.table(name).to_pylist(), name
        asked = pa.concat_tables(traces.table_batches(name))
        assert asked.to_pylist() == whole.table(name).to_pylist(), name
    # Large traces keep no holds.
    monkeypatch.setattr(made, "_KEPT_EVENTS", 0)
    assert all_tables(traces).table("holds").to_pylist() == whole.table("holds").to_pylist()


@pytest.mark.parametrize("name", TABLES)
def test_columns_may_be_chosen(recorded: list[Path], name: str) -> None:
    traces = nptltrace.open(recorded[0])
    chosen = TABLES[name].names[::-3]
    table = traces.table(name, chosen)
    assert table.column_names == [column for column in TABLES[name].names if column in chosen]
    whole = traces.table(name, TABLES[name].names)
    assert table.equals(whole.select(table.column_names))


def test_call_sites_are_the_same_in_all_runs(recorded: list[Path]) -> None:
    """The program may be loaded at any address."""
    first, second = (nptltrace.open(path).table("sites") for path in recorded)

    def of(table: pa.Table) -> dict[str, str]:
        rows = table.to_pylist()
        return {row["site_id"]: row["site"] for row in rows if row["module"] == "mix"}

    common = of(first).keys() & of(second).keys()
    assert len(common) > 5
    assert all(of(first)[site] == of(second)[site] for site in common)
    assert all(len(site) == 32 for site in common)
    assert any("mix.c:" in site for site in of(first).values())


def test_call_sites_of_records(tmp_path: Path) -> None:
    """Traces of other handlers have addresses in place of site numbers."""
    trace = Builder(tmp_path / "run.ptt")
    trace.thread(1, [taken(0, A), Event(T0 + 900, "MUTEX_FREE", A, 6), taken(1000, A)])
    traces = nptltrace.open(trace.write_records())
    events = traces.table("events", ["stack_id", "site"])
    assert events["site"].to_pylist() == [5, 6, 5]
    first, second, third = events["stack_id"].to_pylist()
    assert first == third != second
    assert keys(events, "stack_id") == keys(traces.table("stacks"), "stack_id")
    assert sorted(traces.table("sites")["site"].to_pylist()) == ["0x5", "0x6"]


def locks_held(trace: Path) -> list[int | None]:
    """Return the column of waits, in the order of their begin."""
    waits = nptltrace.open(trace).table("waits", ["t_ns", "locks_held"]).to_pylist()
    return [row["locks_held"] for row in sorted(waits, key=lambda row: row["t_ns"])]


def test_locks_held_during_waits(tmp_path: Path) -> None:
    """A thread holds a lock while it waits for another lock, and gives that up for a condition."""
    waited = Event(T0 + 100, "MUTEX_TAKEN", A, 5, variant="WAITED", fields={"wait_ns": 80})
    cond, gone = A + 0x1000, Event(T0 + 201, "MUTEX_FREE", A, 6)
    whole = Builder(tmp_path / "whole.ptt")
    whole.thread(1, [taken(0, A), Event(T0 + 90, "MUTEX_FREE", A, 6)])
    sleep = Event(T0 + 200, "COND_WAIT_IN", cond, 8, fields={"mutex": A})
    whole.thread(2, [taken(10, B), wait(20, A, 1), waited, sleep, gone])
    whole.thread(3, [Event(T0 + 210, "COND_WAIT_IN", cond, 8, fields={"mutex": A})])
    assert locks_held(whole.write()) == [1, 1, 0]
    # At level 1 the number is not known.
    waits_only = Builder(tmp_path / "waits.ptt", session={"state": "complete", "level": "1"})
    waits_only.thread(2, [wait(20, A, 1), waited])
    assert locks_held(waits_only.write()) == [None]


def test_a_chain_of_waits(tmp_path: Path) -> None:
    traces = nptltrace.open(chain(tmp_path / "run.ptt"))
    waits = {row["tid"]: row for row in traces.table("waits").to_pylist()}
    assert waits[2]["parent_wait"] is None
    assert waits[2]["chain_id"] == waits[2]["wait_id"]
    assert waits[3]["parent_wait"] == waits[3]["chain_id"] == waits[2]["wait_id"]
    assert (waits[3]["op"], waits[3]["owner_tid"], waits[3]["open"]) == ("mutex_lock", 2, True)
    (edge,) = traces.table("edges").to_pylist()
    addresses = {row["lock_id"]: row["addr"] for row in traces.table("objects").to_pylist()}
    assert (addresses[edge["held_lock"]], addresses[edge["wanted_lock"]]) == (B, A)
    (process,) = traces.table("processes").to_pylist()
    assert (process["pid"], process["cmdline"]) == (100, "x 'a b'")
    names = traces.table("objects", ["name", "name_source"]).to_pylist()
    assert {"name": f"{A:#x}", "name_source": "address"} in names


ATTRIBUTES = """
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static pthread_mutex_t plain, special, untold = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock;
static pthread_cond_t cond;
static pthread_barrier_t barrier;
static sem_t sem;
int main(void)
{
	pthread_mutexattr_t of_mutex;
	pthread_rwlockattr_t of_rwlock;
	pthread_condattr_t of_cond;
	pthread_mutexattr_init(&of_mutex);
	pthread_mutexattr_settype(&of_mutex, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutexattr_setprotocol(&of_mutex, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_setrobust(&of_mutex, PTHREAD_MUTEX_ROBUST);
	pthread_rwlockattr_init(&of_rwlock);
	pthread_rwlockattr_setkind_np(&of_rwlock, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_condattr_init(&of_cond);
	pthread_condattr_setclock(&of_cond, CLOCK_MONOTONIC);
	pthread_mutex_init(&plain, 0);
	pthread_mutex_init(&special, &of_mutex);
	pthread_mutex_lock(&untold);
	pthread_mutex_unlock(&untold);
	pthread_rwlock_init(&rwlock, &of_rwlock);
	pthread_cond_init(&cond, &of_cond);
	pthread_barrier_init(&barrier, 0, 5);
	return sem_init(&sem, 0, 3);
}
"""


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_attributes_of_objects(handler: str, compile_c: Compiler, record: Recorder) -> None:
    trace = record(compile_c(ATTRIBUTES, name="attributes"), options=("--handler", handler))
    objects = nptltrace.open(trace).table("objects", ["name", "init_attr"]).to_pylist()
    assert {row["name"]: row["init_attr"] for row in objects} == {
        "plain": "normal", "special": "recursive inherit robust", "untold": None,
        "rwlock": "prefer-writer-nonrecursive", "cond": "monotonic", "barrier": "count=5",
        "sem": "value=3",
    }  # fmt: skip


def test_policies(tmp_path: Path) -> None:
    story = Story().create(2, 3)
    story.do(2, "THREAD_PRIORITY", pthread(2), policy=1, priority=7)
    story.do(MAIN, "THREAD_PRIORITY", 0x7FFF99990000, policy=2, priority=3)
    story.do(3, "MUTEX_TAKEN", A).do(4, "MUTEX_TAKEN", B)
    threads = nptltrace.open(story.write_to(tmp_path / "run.ptt")).table("threads").to_pylist()
    assert {row["tid"]: (row["policy"], row["prio"]) for row in threads} == {
        MAIN: ("rr", 3), 2: ("fifo", 7), 3: ("other", 0), 4: (None, None),
    }  # fmt: skip


def test_a_window(tmp_path: Path) -> None:
    traces = nptltrace.open(chain(tmp_path / "run.ptt"))
    late = all_tables(traces, scope=Scope(Window(25, None)))
    assert late.table("events")["ts_ns"].to_pylist() == [30, 900]
    waits = late.table("waits", ["tid", "t_ns", "dur_ns"]).to_pylist()
    # The first wait began before the window; the table has the part of each in the window.
    assert waits == [
        {"tid": 2, "t_ns": 25, "dur_ns": 875}, {"tid": 3, "t_ns": 30, "dur_ns": 870}
    ]  # fmt: skip
    # A wait that hangs keeps its true begin, as in a report.
    with closing(Database(late)) as database:
        hung = database.query("select tid, t_ns, begin_ns from open_waits", None).to_pylist()
    assert hung == [
        {"tid": 2, "t_ns": 25, "begin_ns": 20}, {"tid": 3, "t_ns": 30, "begin_ns": 30}
    ]  # fmt: skip


def test_losses(tmp_path: Path) -> None:
    trace = Builder(tmp_path / "run.ptt")
    lost = Event(T0 + 50, "EVENTS_LOST", fields={"cause": 7, "count": 11})
    trace.thread(1, [taken(0, A), lost])
    path = trace.write()
    session = path / "info" / "session.json"
    reported = json.loads(session.read_text()) if session.exists() else {}
    session.write_text(json.dumps(reported | {"lost": {"buffers_full": 5, "unfinished": 0}}))
    rows = nptltrace.open(path).table("lost").to_pylist()
    assert [(row["cause"], row["count"], row["tid"], row["t_ns"]) for row in rows] == [
        ("buffers_full", 5, None, None),
        ("cause 7", 11, 1, 50),
    ]


def test_findings_have_the_columns_of_the_check(recorded: list[Path]) -> None:
    names = TABLES["findings"].names
    schema = findings(Traceset(recorded[0])).schema
    assert set(schema.names) <= set(names)
    table = nptltrace.open(recorded[0]).findings()
    for field in schema:
        assert table.schema.field(field.name).type == field.type


def test_schemas_describe_their_columns() -> None:
    for name, table in TABLES.items():
        metadata = table.schema().metadata
        assert metadata[b"nptltrace.table"] == name.encode()
        assert metadata[b"nptltrace.schema_version"] == str(SCHEMA_VERSION).encode()
        assert len(set(table.names)) == len(table.names)
        for column in table.columns:
            assert column.meaning
            if column.name.endswith("_ns"):
                assert (column.unit, column.type) == ("ns", "int64")
    assert set(ROW_TABLES) <= TABLES.keys()


def test_the_page_follows_the_declaration() -> None:
    text = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    assert text == tables_page.renewed(text), "run `make commands`"


def test_no_such_table(recorded: list[Path]) -> None:
    with pytest.raises(nptltrace.UsageError, match=r"no table 'wait'; did you mean waits\?"):
        nptltrace.open(recorded[0]).table("wait")
    with pytest.raises(nptltrace.UsageError, match=r"no table 'x': there are runs, .*waits"):
        nptltrace.open(recorded[0]).table("x")


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda ts: ts.table("waits", ["tid", "typo"]), "no column 'typo': it has run_id, "),
        (lambda ts: ts.table("waits", "kind"), "columns must be a list of names"),
        (lambda ts: next(ts.table_batches("events", ["typo"])), "no column 'typo'"),
        (lambda ts: next(ts.batches(batch_size=0)), "batch_size must be 1 or more, not 0"),
        (lambda ts: next(ts.batches(batch_size=-1)), "batch_size must be 1 or more, not -1"),
        (lambda ts: ts.middle_time(max_events=-1), "max_events must not be negative"),
        (lambda ts: ts.events(1.5), "a time is a whole number of ns, not 1.5"),
        (lambda ts: ts.middle_time("1ms"), "a time is a whole number of ns, not '1ms'"),
        (lambda ts: ts.events(fields="wait_ns"), "fields must be a list of names"),
        (lambda ts: nptltrace.open(cast("Any", ts.paths())), "one by one"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, ask: Callable[[Any], object], what: str) -> None:
    traces = nptltrace.open(chain(tmp_path / "run.ptt"))
    with pytest.raises(nptltrace.UsageError, match=what):
        ask(traces)


def test_incomplete_traces_have_tables(tmp_path: Path) -> None:
    empty = Builder(tmp_path / "empty.ptt").write()
    traces = nptltrace.open(empty)
    for name in TABLES:
        assert traces.table(name).num_rows == (name == "runs"), name
    shutil.rmtree(empty / "info")
    traces = nptltrace.open(empty)
    assert traces.table("runs")["events"].to_pylist() == [0]
    bare = chain(tmp_path / "bare.ptt")
    shutil.rmtree(bare / "info")
    traces = nptltrace.open(bare)
    assert traces.table("waits")["tid"].to_pylist() == [2, 3]
    assert keys(traces.table("events"), "stack_id") == keys(traces.table("stacks"), "stack_id")
