"""Scans that a query gives up, and handles at exit: PTT frees nothing that is in use."""

from __future__ import annotations

import gc
import importlib
import signal
import subprocess
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.analysis.answers import all_tables
from nptltrace.analysis.sql.tables import TraceTables
from nptltrace.trace.reading.cancellation import CancelledError, stoppable
from nptltrace.trace.reading.prefetch import reading_ahead
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Ptt

# Several batches of events, and of holds.
EVENTS = 1_000_000
GIVEN_UP = (
    "select * from events limit 10",
    "select event, object from events limit 1",
    "from holds limit 1",
    "select tid from holds where dur_ns > 5 limit 1",
    "select h.tid from holds h join events e using (tid) limit 3",
    "select tid from holds union all select tid from events limit 3",
)
FAILING = ("select cast('x' as int) from holds", "select cast(event as int) from events")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a made-up program, of several batches."""
    path = tmp_path_factory.mktemp("made-up") / "made-up.ptt"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        importlib.import_module("support.made").make_trace(path, EVENTS, 4, 8)
    return path


def script(ptt: Ptt, text: str, *arguments: object, status: int = 0) -> str:
    """Run a program of Python and return what it printed."""
    command = [sys.executable, "-X", "faulthandler", "-c", text, *map(str, arguments)]
    done = subprocess.run(
        command, env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout


# ---- queries ----


@pytest.mark.parametrize("query", [GIVEN_UP[0], GIVEN_UP[2], GIVEN_UP[5]])
def test_a_query_may_want_some_rows_only(ptt: Ptt, trace: Path, query: str) -> None:
    done = ptt("sql", trace, query, "--format", "csv")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) in {2, 4, 11}


@pytest.mark.parametrize("query", FAILING)
def test_a_query_may_fail_in_its_middle(ptt: Ptt, trace: Path, query: str) -> None:
    done = ptt("sql", trace, query, status=2)
    assert done.stderr.startswith("ptt: error: Could not convert")
    assert done.stderr.count("\n") == 1


def test_a_program_may_leave_everything_open(ptt: Ptt, trace: Path) -> None:
    text = (
        "import sys, nptltrace\n"
        "ts = nptltrace.open(sys.argv[1])\n"
        "rows = ts.table_batches('holds'), ts.batches()\n"
        "print([next(one).num_rows > 0 for one in rows])\n"
        "for query in sys.argv[2:]:\n"
        "    try:\n"
        "        print(ts.sql(query).num_rows)\n"
        "    except nptltrace.UsageError as error:\n"
        "        kept = error\n"
        "        print('failed')\n"
    )
    lines = script(ptt, text, trace, *GIVEN_UP, *FAILING).splitlines()
    assert lines == ["[True, True]", "10", "1", "1", "1", "3", "3", "failed", "failed"]


def test_a_program_may_fail_with_a_query(ptt: Ptt, trace: Path) -> None:
    text = "import sys, nptltrace\nts = nptltrace.open(sys.argv[1])\nts.sql(sys.argv[2])\n"
    script(ptt, text, trace, FAILING[0], status=1)


@pytest.mark.parametrize("query", GIVEN_UP)
def test_an_abandoned_scan_has_ended(
    trace: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the answer is there, nothing makes rows any more."""
    open_scans: list[str] = []
    batches = TraceTables.batches

    def spy(self: TraceTables, name: str, *more: Any) -> Iterator[Any]:
        open_scans.append(name)
        try:
            yield from batches(self, name, *more)
        finally:
            open_scans.remove(name)

    monkeypatch.setattr(TraceTables, "batches", spy)
    before = threading.enumerate()
    traces = nptltrace.open(trace)
    assert traces.sql(query).num_rows in {1, 3, 10}
    assert open_scans == []
    new = [thread for thread in threading.enumerate() if thread not in before]
    assert [thread for thread in new if "Pool" in thread.name] == []


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from events a join events b using (tid) where a.ts_ns > b.ts_ns + a.tid",
        "select count(*) from holds a join holds b using (tid) where a.t_ns > b.t_ns + a.tid",
        "select * from events; " * 100,
    ],
    ids=["events", "holds", "several"],
)
def test_an_interrupt_ends_scans(ptt: Ptt, trace: Path, query: str) -> None:
    process = subprocess.Popen(
        ptt.command("sql", trace, f"select 'begun'; {query}", "--format", "csv"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=ptt.environment({"PYTHONUNBUFFERED": "1"}),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"'begun'\n"
    reader = threading.Thread(target=process.stdout.read)
    reader.start()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    reader.join()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()


def test_a_query_after_one_that_was_stopped(trace: Path) -> None:
    from nptltrace.analysis.sql.query import Database

    traces = nptltrace.open(trace)
    database = Database(all_tables(traces))
    with pytest.raises(KeyboardInterrupt):
        database.interruptible(lambda: signal.raise_signal(signal.SIGINT))
    rows = database.query("select count(*) as n from events")
    assert rows["n"].to_pylist() == [traces.events().num_rows]
    database.close()


def test_threads_may_ask_at_once(trace: Path) -> None:
    traces = nptltrace.open(trace)
    counts: list[int] = []

    def ask() -> None:
        counts.append(traces.sql("select count(*) as n from events")["n"][0].as_py())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [traces.events().num_rows] * 4


def test_abandoned_work_ends(trace: Path) -> None:
    from nptltrace._binding.libpttread import Cursor

    unwanted = threading.Event()
    cursor = Cursor(nptltrace.open(trace).reader)
    with stoppable(unwanted), reading_ahead(cursor) as batches:
        assert next(batches).count
        unwanted.set()
        with pytest.raises(CancelledError):
            next(batches)
    # Work outside `stoppable` goes on.
    with reading_ahead(cursor) as batches:
        assert next(batches).count


# ---- handles ----


def test_a_thread_may_be_at_work_at_the_exit(ptt: Ptt, trace: Path) -> None:
    """The thread's data stays until the process ends."""
    text = (
        "import sys, threading, nptltrace\n"
        "from nptltrace.analysis.checking.checker import Checker\n"
        "from nptltrace.analysis.model import run_model\n"
        "from nptltrace.api import Traceset\n"
        "begun = threading.Barrier(3)\n"
        "def work(what):\n"
        "    begun.wait()\n"
        "    while True:\n"
        "        what(Traceset(sys.argv[1]))\n"
        "for what in run_model, lambda source: Checker(source, 10**9).read():\n"
        "    threading.Thread(target=work, args=(what,), daemon=True).start()\n"
        "begun.wait()\n"
        "threading.Event().wait(0.2)\n"
        "print('over')\n"
    )
    assert script(ptt, text, trace) == "over\n"


def test_a_view_keeps_what_it_shows(trace: Path) -> None:
    from nptltrace.analysis.model import run_model
    from nptltrace.api import Traceset

    model = run_model(Traceset(trace))
    view, copy = model.table("threads", copy=False), model.table("threads")
    alive = weakref.ref(model.handle)
    model.close()
    del model
    gc.collect()
    assert alive() is not None
    assert (view == copy).all()
    del view
    gc.collect()
    assert alive() is None
