"""`ptt report --gil`: the threads and lines that held or awaited the interpreter's lock."""

from __future__ import annotations

import csv
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.trace.objects.conditions import Condition
from nptltrace.trace.objects.gils import HAND_OVER, find_gils, name_of_part, place_of_part
from tests.hang.test_cpython import interpreters, minor_of
from tests.python.test_frames import marked
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = ROOT / "tests" / "programs" / "python_convoy.py"
INTERPRETERS = PROGRAM.with_name("python_interpreters.py")


def rows_at(rows: list[dict[str, Any]], mark: str) -> dict[str, Any]:
    """Return the row of the line with a mark."""
    (line,) = marked(PROGRAM, mark)
    (row,) = [row for row in rows if row["site"].endswith(line)]
    return row


@pytest.mark.parametrize("python", interpreters())
def test_a_convoy_behind_a_c_function_is_reported(python: str, ptt: Ptt, record: Recorder) -> None:
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("frames of this version are not read")
    trace = record(python, PROGRAM)
    rows = json.loads(ptt("report", "--gil", "--format", "json", trace).stdout)["rows"]
    computes, answers = rows_at(rows, "computes"), rows_at(rows, "answers")
    # Every waiter waits for the thread that computes. That thread is at the marked line most of the
    # time.
    assert computes["tid"] != answers["tid"]
    assert max(rows, key=lambda row: row["wait_ns"]) == answers
    assert max(rows, key=lambda row: row["wait_caused_ns"]) == computes
    assert computes["wait_caused_ns"] > answers["wait_ns"] / 2
    assert answers["wait_max_ns"] <= answers["wait_ns"]
    assert 0 < sum(row["share"] for row in rows) <= 1.001
    # A lock has a single holder at a time, so no computed hold is shorter than 0 ns.
    assert all(row["hold_ns"] >= 0 for row in rows)
    query = "select site, wait_ns, wait_caused_ns from gil join sites using (run_id, site_id)"
    table = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    for name, one in (("wait_ns", answers), ("wait_caused_ns", computes)):
        assert one[name] == sum(row[name] for row in table if row["site"] == one["site"])
    for option, column in (
        ("--tid", "tid"),
        ("--pid", "pid"),
        ("--site", "site"),
        ("--object", "gil"),
    ):
        chosen = ptt(
            "report", "--gil", option, str(answers[column]), "--format", "json", trace
        ).stdout
        alike = [row for row in rows if row[column] == answers[column]]
        assert json.loads(chosen)["rows"] == alike, option


@pytest.mark.parametrize("python", interpreters())
def test_the_lock_of_the_interpreter_is_named_gil(python: str, ptt: Ptt, record: Recorder) -> None:
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("frames of this version are not read")
    trace = record(python, PROGRAM)
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    (lock,) = [item for item in document["objects"] if item["name"] == "GIL"]
    assert lock["kind"] == "cond"
    assert document["gil_ns"] >= lock["gil_ns"] > 0
    text = ptt("report", trace).stdout
    assert "for the GIL of Python" in text
    assert "    the GIL\n" in text  # the column has room for 100.000 ms and a space
    alone = json.loads(ptt("report", "--object", "GIL", "--format", "json", trace).stdout)
    assert [item["object"] for item in alone["objects"]] == [lock["object"]]
    query = "select distinct name from objects where name like 'GIL%' or name like '_PyRuntime%'"
    table = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert {"GIL", "GIL (mutex)", "GIL (hand-over)"} <= {row["name"] for row in table}


@pytest.mark.parametrize("python", interpreters())
def test_waits_for_the_gil_are_a_class(python: str, ptt: Ptt, record: Recorder) -> None:
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("frames of this version are not read")
    trace = record(python, PROGRAM)
    query = "select object_name as name, class, sum(dur_ns) as ns from named_waits group by all"
    rows = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert {row["class"] for row in rows if row["name"].startswith("GIL")} == {"gil"}
    assert all(row["name"].startswith("GIL") for row in rows if row["class"] == "gil")
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    threads = [thread["gil_ns"] for thread in document["threads"]]
    assert sum(threads) == document["gil_ns"] == sum(r["ns"] for r in rows if r["class"] == "gil")
    # No other object held up either thread for long.
    assert document["gil_ns"] > 10 * (document["wait_ns"] + document["timeout_ns"])
    states = "select distinct state from states join waits using (wait_id) where class = 'gil'"
    found = json.loads(ptt("sql", "--format", "json", trace, states).stdout)
    assert {row["state"] for row in found} <= {"blocked", "ready"}


def test_the_report_has_text_and_csv(ptt: Ptt, record: Recorder, compile_c: Compiler) -> None:
    trace = record(sys.executable, PROGRAM)
    text = ptt("report", "--gil", trace).stdout
    assert "the GIL was held for" in text
    assert "compute (python_convoy.py:" in text
    rows = list(
        csv.DictReader(ptt("report", "--gil", "--format", "csv", trace).stdout.splitlines())
    )
    assert any(row["site"].startswith("answer (") for row in rows)
    other = record(compile_c("int main(void) { return 0; }"))
    assert "nothing of a GIL" in ptt("report", "--gil", other).stdout
    wrong = ptt("report", "--gil", "--by", "thread", trace, status=2).stderr
    assert "--gil cannot be combined with" in wrong


@pytest.mark.parametrize("python", interpreters())
def test_interpreters_with_their_own_gil(python: str, ptt: Ptt, record: Recorder) -> None:
    """Each GIL is a separate lock: no thread waits for a thread of another interpreter."""
    if not 12 <= minor_of(python) <= 13:
        pytest.skip("all interpreters share one, or there is no module that makes others")
    trace = record(python, INTERPRETERS)
    rows = json.loads(ptt("report", "--gil", "--format", "json", trace).stdout)["rows"]
    spinning = [row for row in rows if row["site"].startswith("spin ")]
    assert {row["gil"] for row in spinning} == {"GIL #2", "GIL #3"}
    for gil in ("GIL #2", "GIL #3"):
        own = [row for row in rows if row["gil"] == gil]
        assert len({row["tid"] for row in own if row in spinning}) == 2
        assert sum(row["wait_ns"] for row in own) > 0
        assert 0 < sum(row["share"] for row in own) <= 1.001
    text = ptt("report", "--gil", trace).stdout
    assert text.count("was held for") == 3
    document = json.loads(ptt("report", "--format", "json", trace).stdout)
    waited = {item["name"]: item for item in document["objects"] if item["gil_ns"]}
    assert {"GIL #2", "GIL #3"} <= set(waited)
    # A thread waits for the GIL with a time limit, again and again: no such wait counts as timed
    # out.
    assert all(not item["timeout_ns"] and not item["wait_ns"] for item in waited.values())
    alone = json.loads(ptt("report", "--object", "GIL #2", "--format", "json", trace).stdout)
    assert {item["name"] for item in alone["objects"]} == {"GIL #2"}
    query = "select distinct name from gil"
    table = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert {"GIL #2", "GIL #3"} <= {row["name"] for row in table}


def test_a_gil_without_an_event_keeps_its_number() -> None:
    """The first interpreter may do nothing in a part of a trace."""
    own, another = Condition(5, own=True), Condition(1, own=False)
    heap = {0x1000: own, 0x1000 + HAND_OVER: own, 0x2000: another, 0x2000 + HAND_OVER: own}
    gils = find_gils(heap, lambda _: False)
    assert gils == (0, 0x1000)
    assert name_of_part(gils, 0x1000) == "GIL #2"
    assert not name_of_part(gils, 0)
    assert place_of_part(gils, "GIL #2") == 0x1000
    assert place_of_part(gils, "GIL") is None
    assert find_gils({0x2000: another, 0x2000 + HAND_OVER: own}, lambda _: False) == ()
