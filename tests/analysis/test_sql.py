"""SQL over a trace: answers, the events that a query reads, and refused queries."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow.compute as pc
import pytest

import nptltrace
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.sql import tables
from nptltrace.analysis.sql.query import Database
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.analysis.sql.spill import Shelf
from nptltrace.analysis.sql.tables import TraceTables
from nptltrace.analysis.sql.views import VIEWS
from nptltrace.errors import PttError
from nptltrace.trace.reading.parallel import event_batches
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nptltrace.api import Traceset
    from tests.support import Ptt

T0 = 10**12
A, B = 0x4040, 0x4080


def taken(ts: int, lock: int = A, waited: int | None = None) -> Event:
    if waited is None:
        return Event(T0 + ts, "MUTEX_TAKEN", lock, 5)
    fields = {"result": 0, "wait_ns": waited}
    return Event(T0 + ts, "MUTEX_TAKEN", lock, 5, variant="WAITED", fields=fields)


def free(ts: int, lock: int = A) -> Event:
    return Event(T0 + ts, "MUTEX_FREE", lock, 6)


def wait(ts: int, lock: int = A, owner: int = 0) -> Event:
    return Event(T0 + ts, "MUTEX_WAIT", lock, 7, fields={"owner": owner})


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Traceset]:
    """Open a trace of threads, given as lists of events by tid."""

    def make(**threads: list[Event]) -> Any:
        made = Builder(tmp_path / "made.ptt")
        for name, events in threads.items():
            made.thread(int(name[1:]), events)
        made.processes = [
            {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
            {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + n) for n in range(1, 20)}}},
        ]
        return nptltrace.open(made.write())

    return make


@pytest.fixture
def contended(build: Callable[..., Any]) -> Any:
    """Thread 2 waits for a lock of thread 1 from 20 to 100, thread 3 from 50 to 150."""
    return build(
        t1=[taken(0), free(100)],
        t2=[wait(20, owner=1), taken(100, waited=80), free(150)],
        t3=[wait(50, owner=1), taken(150, waited=100), free(160)],
    )


def rows(traces: Any, query: str) -> list[Any]:
    return [tuple(row.values()) for row in traces.sql(query).to_pylist()]


# ---- answers ----

# DuckDB takes a program that is in no file for an interactive session.
IN_NO_FILE = """
import sys, nptltrace
query = "select current_setting('enable_progress_bar') as bar"
print(nptltrace.open(sys.argv[1]).sql(query).to_pylist())
"""


@pytest.mark.usefixtures("contended")
def test_nothing_but_the_answer_is_printed(ptt: Ptt, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_NO_FILE, str(tmp_path / "made.ptt")]
    done = subprocess.run(
        command, env=ptt.environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[{'bar': False}]\n"


def test_sums_are_integers(contended: Any) -> None:
    query = "select class, count(*), sum(dur_ns) from waits group by all"
    assert rows(contended, query) == [("contended", 2, 180)]
    assert isinstance(contended.sql("select sum(dur_ns) as s from waits")["s"][0].as_py(), int)


def test_addresses_compare_with_text(contended: Any) -> None:
    query = "select count(*), any_value(address(addr)) from objects where addr = '0x4040'"
    assert rows(contended, query) == [(1, f"{A:#x}")]


def test_statements_share_a_connection(contended: Any) -> None:
    contended.sql("create temp table slow as select * from waits where dur_ns > 90")
    assert rows(contended, "select tid from slow; select count(*) from slow") == [(1,)]
    assert contended.sql("drop table slow").num_rows == 0


@pytest.mark.parametrize("view", [view for view in VIEWS if not view.value], ids=lambda v: v.name)
def test_views_answer(contended: Any, view: Any) -> None:
    call = view.call.replace("at_ns", "60")
    assert contended.sql(f"from {call}").num_columns > 0


def test_contention_by_object(contended: Any) -> None:
    query = "select waits, wait_ns, wait_max_ns, holds, hold_ns, max_waiters, threads, lock_id"
    ((*figures, lock),) = rows(contended, f"{query} from contention_by_object")
    assert figures == [2, 180, 100, 3, 100 + 50 + 10, 2, 3]
    assert rows(contended, "select lock_id from objects") == [(lock,)]


def test_blame_and_sites(contended: Any) -> None:
    assert rows(contended, "select owner_tid, waits, wait_caused_ns from blame") == [
        (1, 2, 130), (2, 0, 50),
    ]  # fmt: skip
    by_site = rows(contended, "select site, waits, wait_ns from contention_by_site")
    assert by_site == [("0x401007", 2, 180)]


def test_time_of_threads(contended: Any) -> None:
    query = "select tid, life_ns, running_ns, wait_ns from idle_vs_contended order by tid"
    assert rows(contended, query) == [(1, 160, 160, 0), (2, 140, 60, 80), (3, 110, 10, 100)]
    query = "select start_ns, end_ns, state from thread_timeline where tid = 2"
    assert rows(contended, query) == [(20, 100, "contended"), (100, 160, "not waiting")]


def test_a_thread_lives_as_long_as_it_waits(build: Callable[..., Any]) -> None:
    """A thread lives at least as long as it waits, as in the report."""
    traces = build(t1=[taken(0), taken(900, B)], t2=[taken(100, 0x40C0), wait(300, owner=1)])
    query = "select tid, life_ns, running_ns, wait_ns from idle_vs_contended order by tid"
    assert rows(traces, query) == [(1, 900, 900, 0), (2, 800, 200, 600)]


def test_moments(contended: Any) -> None:
    query = "select tid, owner_tid, age_ns from wait_graph({}) order by tid"
    assert rows(contended, query.format(60)) == [(2, 1, 40), (3, 1, 10)]
    assert rows(contended, query.format(120)) == [(3, 1, 70)]
    assert rows(contended, query.format(155)) == []
    assert rows(contended, "select tid, age_ns from held_at(120)") == [(2, 20)]


def test_chains(build: Callable[..., Any]) -> None:
    traces = build(
        t1=[taken(0), Event(T0 + 900, "MUTEX_FREE", A, 6)],
        t2=[taken(10, B), wait(20, A, 1), taken(900, A, 880), free(910, A), free(920, B)],
        t3=[wait(30, B, 2), taken(920, B, 890)],
    )
    chains = rows(traces, "select depth, path, tid from blocked_chains")
    assert chains == [
        (0, f"thread 2 → {A:#x}", 2),
        (1, f"thread 3 → {B:#x} → thread 2 → {A:#x}", 3),
    ]


def test_lock_order_cycles(build: Callable[..., Any]) -> None:
    c = 0x40C0
    traces = build(
        t1=[taken(0, A), taken(1, B), free(2, B), free(3, A)],
        t2=[taken(10, B), taken(11, c), free(12, c), free(13, B)],
        t3=[taken(20, c), taken(21, A), free(22, A), free(23, c)],
    )
    query = "select object_names, guarded, one_thread from lock_order_cycles"
    assert rows(traces, query) == [([f"{A:#x}", f"{B:#x}", f"{c:#x}"], False, False)]


def test_guarded_cycles_say_so(build: Callable[..., Any]) -> None:
    gate = 0x4100

    def both(ts: int, first: int, second: int) -> list[Event]:
        order = [taken(ts, gate), taken(ts + 1, first), taken(ts + 2, second)]
        return [*order, free(ts + 3, second), free(ts + 4, first), free(ts + 5, gate)]

    traces = build(t1=both(0, A, B), t2=both(10, B, A))
    query = "select guarded, one_thread from lock_order_cycles"
    assert rows(traces, query) == [(True, False)]


# ---- events that a query reads ----


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The parts of the events that a query read: begin, end, fields."""
    calls: list[tuple[Any, ...]] = []

    def spy(source: Any, begin_ns: int | None, end_ns: int | None, **more: Any) -> Iterator[Any]:
        calls.append((begin_ns, end_ns, sorted(more["fields"])))
        return event_batches(source, begin_ns, end_ns, **more)

    monkeypatch.setattr(tables, "event_batches", spy)
    return calls


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("select event, count(*) from events group by all", (None, None, [])),
        ("select max(wait_ns) from events", (None, None, ["wait_ns"])),
        ("select tid from events where wait_ns > 5", (None, None, ["wait_ns"])),
        ("select tid from events where ts_ns >= 100 and ts_ns < 150", (100, 150, [])),
        ("select tid from events where ts_ns between 100 and 150", (100, 151, [])),
        ("select tid from events where ts_ns = 150 and event = 'MUTEX_FREE'", (150, 151, [])),
        ("select tid from events where ts_ns > 100 or tid = 1", (None, None, [])),
        ("select tid from events where not (ts_ns > 100)", (None, 101, [])),
        ("select tid from events where event = '(ts_ns > 5)'", (None, None, [])),
    ],
)
def test_a_query_reads_only_the_events_it_needs(
    contended: Any, asked: list[tuple[Any, ...]], query: str, read: tuple[Any, ...]
) -> None:
    contended.sql(query)
    assert asked == [read]


def test_tables_may_be_read_at_once(contended: Any) -> None:
    names = ("waits", "sites", "stacks", "objects", "threads", "modules", "runs", "events")
    count = "(select count(*) from {0}) as {0}"
    counts = [count.format(name) for name in names]
    for _ in range(5):
        contended.refresh()
        (row,) = contended.sql("select " + ", ".join(counts)).to_pylist()
        assert row == {name: contended.table(name).num_rows for name in names}


def test_conditions_hold(contended: Any) -> None:
    events = contended.table("events", TABLES["events"].names)
    for low, high in ((0, 50), (20, 100), (100, 100), (151, 10**9)):
        inside = pc.and_(
            pc.greater_equal(events["ts_ns"], low), pc.less_equal(events["ts_ns"], high)
        )
        query = "select * from events where ts_ns between {} and {} order by ts_ns, tid"
        expected = events.filter(inside).sort_by([("ts_ns", "ascending"), ("tid", "ascending")])
        assert contended.sql(query.format(low, high)).to_pylist() == expected.to_pylist()


def test_only_the_tables_of_a_query_are_made(
    contended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    batches = TraceTables.batches

    def spy(self: TraceTables, name: str, *more: Any) -> Iterator[Any]:
        made.append(name)
        return batches(self, name, *more)

    monkeypatch.setattr(TraceTables, "batches", spy)
    contended.sql("select 1; show tables; describe waits")
    assert made == []
    contended.sql("select * from stack_sites")
    assert sorted(made) == ["sites", "stacks"]


def test_refresh_reads_the_trace_again(tmp_path: Path) -> None:
    made = Builder(tmp_path / "run.ptt")
    made.session = {"state": "running"}
    made.thread(1, [taken(0), free(100)])
    traces = nptltrace.open(made.write())
    assert rows(traces, "select count(*) from holds") == [(1,)]
    made.threads[0].packets.append([taken(200), free(300)])
    made.write()
    traces.refresh()
    assert rows(traces, "select count(*) from holds") == [(2,)]


# ---- refused queries ----


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("selec 1", 'near "selec"; did you mean select? (line 1, column 1)'),
        ("select * form waits", 'near "waits"; did you mean from instead of form? (line 1, column'),
        ("select tid from waits wehre 1", 'near "1"; did you mean where instead of wehre? (line'),
        ("select 1,\n  objekt\nfrom named_waits", "did you mean object"),
        ("select 1,\n  lokc\nfrom named_waits", "(line 2, column 3)"),
        ("select 1;\nselect *\n  from nope", "Table with name nope does not exist"),
        ("select 1;\nselect nope from waits", "(line 2, column 8)"),
        ("select tid from waits where tid = 'abc'", "Could not convert string 'abc'"),
        ("select " + "1, " * 80 + "nope from waits", "(line 1, column 248)"),
    ],
)
def test_errors_are_one_line_with_the_place(contended: Any, query: str, what: str) -> None:
    with pytest.raises(nptltrace.UsageError) as caught:
        contended.sql(query)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("query", ["select * from waits", "select sum(dur_ns) from waits"])
def test_the_error_of_a_table_is_reported_unchanged(
    contended: Any, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    def refused(*_: object) -> NoReturn:
        raise PttError("no room: make some")

    with monkeypatch.context() as patch:
        patch.setattr(Shelf, "add", refused)
        with pytest.raises(PttError) as caught:
            contended.sql(query)
    assert str(caught.value) == "no room: make some"
    # The next query has its own error.
    with pytest.raises(nptltrace.UsageError, match="nope"):
        contended.sql("select nope")


@pytest.mark.parametrize(
    "query",
    [
        "copy waits to '{}/x.csv'",
        "copy (select 1) to '{}/x.parquet'",
        "export database '{}/x'",
        "attach '{}/x.db'",
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from glob('/etc/*')",
        "select * from '/etc/passwd'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set temp_directory = '{}'",
        "pragma enable_profiling='json'; set profiling_output='{}/x'",
    ],
)
def test_queries_reach_nothing_but_the_tables(contended: Any, tmp_path: Path, query: str) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(nptltrace.PttError):
        contended.sql(query.format(tmp_path))
    assert sorted(tmp_path.iterdir()) == before


def test_variables_of_the_caller_are_no_tables(contended: Any) -> None:
    secret = contended.table("waits")  # DuckDB would find this variable by its name
    with pytest.raises(nptltrace.UsageError, match="secret does not exist"):
        contended.sql("select * from secret")
    assert secret.num_rows > 0


def test_without_duckdb(contended: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(nptltrace.PttError, match="pip install duckdb"):
        Database(all_tables(contended))
