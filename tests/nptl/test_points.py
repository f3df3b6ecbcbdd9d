"""Trace points inside a thread library become events: test programs act as the library."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.catalog import EVENTS
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Compiler, Ptt, Recorder

HERE = Path(__file__).parent
FIRST, SECOND = 0x1001, 0x2002
# The tracer's own code makes the events of these points.
_BY_HAND = {
    "lll_taken": ["LLL_PURPOSE", "LLL_TAKEN"],
    "lll_tried": ["LLL_TAKEN"],
    "lll_free": ["LLL_FREE"],
    "lll_wait": ["LLL_WAIT"],
    "lll_waited": ["LLL_TAKEN"],
}


def events_of(ptt: Ptt, trace: Path) -> list[dict[str, Any]]:
    """Return all events of a trace."""
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    return [json.loads(line) for line in lines]


def report_of(ptt: Ptt, trace: Path) -> dict[str, Any]:
    """Return the report on a trace."""
    found = json.loads(ptt("report", "--format", "json", trace).stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def points(compile_c: Compiler) -> Path:
    """The program that passes every trace point."""
    return compile_c(HERE / "points.c")


@pytest.fixture
def locks(compile_c: Compiler) -> Path:
    """The program with the low-level locks."""
    return compile_c(HERE / "locks.c")


def _expected() -> Iterator[tuple[str, dict[str, int]]]:
    catalogue = tomllib.loads((ROOT / "catalog" / "events.toml").read_text(encoding="utf-8"))
    fields = {event.name: [field.name for field in event.fields] for event in EVENTS}
    for point in catalogue["point"]:
        values = dict(zip(point["takes"], (FIRST, SECOND), strict=False))
        for name in _BY_HAND.get(point["name"], point["gives"]):
            yield name, {field: values[field] for field in fields[name] if field in values}


def test_every_point_gives_its_events(ptt: Ptt, points: Path, record: Recorder) -> None:
    """The events come in the catalogue's order, with the numbers in the fields of their names."""
    trace = record(points, options=("--nptl", "stock", "-l", "4"))
    found = [event for event in events_of(ptt, trace) if not event["event"].startswith("PROCESS")]
    expected = list(_expected())
    assert [event["event"] for event in found] == [name for name, _ in expected]
    (address,) = {event["object"] for event in found if event["event"].startswith("MUTEX_")}
    for event, (name, fields) in zip(found, expected, strict=True):
        for field, value in fields.items():
            got = event[field]
            number = int(got, 16) if isinstance(got, str) else got
            assert number == value & 0xFFFF_FFFF, (name, field)
        if event["event"] in {"THREAD_STATE_WAIT", "THREAD_STATE_WAKE"}:
            assert event["futex"] == address
        else:
            assert event["object"] == address


def test_no_internal_event_below_level_4(
    ptt: Ptt, points: Path, locks: Path, record: Recorder
) -> None:
    """Levels 1 to 3 have no events of the library's inside."""
    inside = {event.name for event in EVENTS if event.level == 4}
    for program in (points, locks):
        trace = record(program, options=("--nptl", "stock", "-l", "3"))
        assert not inside & {event["event"] for event in events_of(ptt, trace)}


def test_a_domain_of_the_library_has_its_own_level(
    ptt: Ptt, points: Path, record: Recorder
) -> None:
    """`lll=4` records low-level locks and no other event of the library's inside."""
    trace = record(points, options=("--nptl", "stock", "-l", "2,lll=4"))
    found = {e["event"] for e in events_of(ptt, trace) if not e["event"].startswith("PROCESS")}
    assert found == {"LLL_PURPOSE", "LLL_TAKEN", "LLL_FREE", "LLL_WAIT"}


def test_low_level_locks_are_reported(ptt: Ptt, locks: Path, record: Recorder) -> None:
    """They have waits, holds and causes, and the name of a variable or of a purpose."""
    report = report_of(ptt, record(locks, options=("--nptl", "stock", "-l", "2,lll=4")))
    found = {item["name"]: item for item in report["objects"] if item["kind"] == "lll"}
    stream = found.pop("stream_lock")
    assert (stream["waits"], stream["holds"], stream["threads"]) == (1, 2, 2)
    (blamed,) = stream["blamed"]
    (first,) = {thread["tid"] for thread in report["threads"] if thread["tid"] == thread["pid"]}
    assert blamed["tid"] == first
    assert stream["wait_ns"] > 0
    assert stream["hold_ns"] > 0
    ((name, arena),) = found.items()
    assert name == f"malloc arena {arena['object']}"
    assert (arena["waits"], arena["holds"]) == (0, 1)
    waiter = next(thread for thread in report["threads"] if thread["tid"] != first)
    assert waiter["by_kind"]["lll"] == stream["wait_ns"]


def test_internal_events_cause_no_finding(
    ptt: Ptt, points: Path, locks: Path, record: Recorder
) -> None:
    """Events of the library's inside are no evidence for findings."""
    for program in (points, locks):
        trace = record(program, options=("--nptl", "stock", "-l", "4"))
        assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []
        ptt("verify", trace)


def test_babeltrace2_reads_internal_events(ptt: Ptt, points: Path, record: Recorder) -> None:
    """The second reader finds as many events as PTT."""
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")
    trace = record(points, options=("--nptl", "stock", "-l", "4"))
    done = subprocess.run(
        ["babeltrace2", trace], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert not done.stderr
    assert len(done.stdout.splitlines()) == len(events_of(ptt, trace))


def test_a_thread_made_past_the_hooks_has_begin_and_end(
    ptt: Ptt, compile_c: Compiler, record: Recorder
) -> None:
    """The library reports the begin and the end; no event of the thread lies outside."""
    trace = record(compile_c(HERE / "past.c"), options=("--nptl", "stock", "-l", "4"))
    events = events_of(ptt, trace)
    first = events[0]["tid"]
    names = [event["event"] for event in events if event["tid"] != first]
    assert names == [
        "THREAD_BEGIN", "THREAD_INIT", "MUTEX_STATE_REQUIRE", "THREAD_STATE_DEAD", "THREAD_END",
    ]  # fmt: skip
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []


def test_the_level_can_rise_while_a_program_runs(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    """`ptt level` also enables the library's trace points."""
    program, trace = compile_c(HERE / "raised.c"), tmp_path / "raised.ptt"
    with subprocess.Popen(
        ptt.command("record", "--nptl", "stock", "-l", "2", "-o", trace, "--", program),
        env=ptt.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
    ) as running:  # fmt: skip
        assert running.stdout
        pid = running.stdout.readline().strip()
        ptt("level", pid, "mutex=4")
        assert running.wait(timeout=90) == 0
    assert "MUTEX_STATE_REQUIRE" in {event["event"] for event in events_of(ptt, trace)}
