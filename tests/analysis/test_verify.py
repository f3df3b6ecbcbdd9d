"""`ptt verify` on a library that keeps its promises, and on a library that breaks them."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding import libptttrack_promises
from nptltrace.analysis.model import Window
from nptltrace.analysis.verify import verify
from nptltrace.analysis.vocabulary.document_types import Verify
from nptltrace.api import Traceset
from nptltrace.catalog import BY_ID
from nptltrace.trace.copying import Part, write_trace
from nptltrace.trace.symbols.alias import read_aliases
from nptltrace.trace.symbols.lookup import Symbols
from nptltrace.ui.shapes import fits
from tests.analysis.verify_cases import (
    A_LOCK,
    CASES,
    END,
    LOCK,
    NONE_LEFT,
    SILENT,
    THING,
    WARNINGS,
    S,
    ev,
    free,
    taken,
)
from tests.support import ROOT
from tests.trace.builder import BOOT, Builder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nptltrace.analysis.verify import Verdict
    from tests.analysis.verify_cases import Threads
    from tests.support import Ptt

T0 = 10**12


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace of threads, given as lists of events by tid."""
    made_so_far: list[Path] = []

    def make(threads: Threads, *, session: dict[str, Any] | None = None) -> Path:
        path = tmp_path / f"made-{len(made_so_far)}.ptt"
        made_so_far.append(path)
        made = Builder(path)
        for name, events in threads.items():
            made.thread(int(name[1:]), events)
        made.session |= {"level": "3", "clock": {"name": "monotonic"}}
        made.session |= session or {}
        made.processes = [
            {"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "/bin/x", "cmdline": ["x"]}},
            {"sites": {"process": 0, "sites": {"5": "0x401005"}}},
        ]
        return made.write()

    return make


def verdict_of(trace: Path, **more: Any) -> Verdict:
    source = Traceset(trace)
    return verify(source, Symbols(source, read_aliases([]), []), **more)


def unix_offset(threads: Threads) -> Threads:
    """Move deadlines of the time of day to the day that the builder writes."""
    for event in (event for events in threads.values() for event in events):
        if event.fields.get("clock") == 0 and "deadline_ns" in event.fields:
            event.fields["deadline_ns"] = event.fields["deadline_ns"] % BOOT + BOOT
    return threads


# ---- every rule ----


@pytest.mark.parametrize("name", CASES)
def test_broken(name: str, build: Callable[..., Path]) -> None:
    case = CASES[name]
    verdict = verdict_of(build(case.broken))
    assert [(v.rule, v.severity) for v in verdict.violations] == [(case.rule, "error")]
    assert verdict.checked[case.rule] > 0
    (violation,) = verdict.violations
    assert violation.count == 1
    assert violation.pid == 100
    times = [event.ts_ns for event in violation.events]
    assert times == sorted(times)
    assert violation.ts_ns == violation.events[-1].ts_ns
    assert all(event.text for event in violation.events)


@pytest.mark.parametrize("name", CASES)
def test_kept(name: str, build: Callable[..., Path]) -> None:
    verdict = verdict_of(build(CASES[name].kept))
    assert verdict.violations == []
    assert sum(verdict.checked.values()) > 0


@pytest.mark.parametrize("name", WARNINGS)
def test_warning(name: str, build: Callable[..., Path]) -> None:
    case = WARNINGS[name]
    verdict = verdict_of(build(unix_offset(case.broken)))
    assert [(v.rule, v.severity) for v in verdict.violations] == [(case.rule, "warning")]
    assert verdict_of(build(unix_offset(case.kept))).violations == []


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in [*CASES.values(), *WARNINGS.values()]} == set(
        libptttrack_promises.rules()
    )


def test_every_rule_and_reason_is_documented() -> None:
    text = (ROOT / "docs" / "explanation" / "verify.md").read_text(encoding="utf-8")
    assert [
        name
        for name in libptttrack_promises.rules() + libptttrack_promises.skips()
        if f"`{name}`" not in text
    ] == []


# ---- traces without a verdict ----


@pytest.mark.parametrize("name", SILENT)
def test_silent(name: str, build: Callable[..., Path]) -> None:
    assert verdict_of(build(SILENT[name])).violations == []


@pytest.mark.parametrize(
    "session",
    [
        {"lost": {"buffers_full": 3}},
        {"state": "running"},
        {"state": "recovered"},
        {"overwritten_bytes": 4096},
        {"removed_events": 10},
        {"uncovered": [{"module": "/lib/x.so", "why": "-Bsymbolic"}]},
        {"level_changed": True},
        {"part": "thread"},
    ],
    ids=lambda session: next(iter(session)),
)
def test_gaps_leave_single_calls(session: dict[str, Any], build: Callable[..., Path]) -> None:
    threads = {**A_LOCK, "t3": CASES["interrupted"].broken["t1"]}
    verdict = verdict_of(build(threads, session=session))
    assert [violation.rule for violation in verdict.violations] == ["result"]
    assert len(verdict.gaps) == 1
    assert verdict.skipped["incomplete"] == 4


def test_damage_is_a_gap(build: Callable[..., Path]) -> None:
    trace = build(A_LOCK)
    file = trace / "stream-00000"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))
    verdict = verdict_of(trace)
    assert verdict.violations == []
    assert ["damaged" in gap for gap in verdict.gaps] == [True]


def test_a_window_is_judged_like_the_whole(build: Callable[..., Path], tmp_path: Path) -> None:
    trace = build(A_LOCK)
    assert len(verdict_of(trace, window=Window(0, 101)).violations) == 1
    assert verdict_of(trace, window=Window(0, 60)).violations == []
    assert verdict_of(trace, window=Window(20, None)).violations == []


def test_a_choice_of_threads_is_a_gap(build: Callable[..., Path], tmp_path: Path) -> None:
    trace = build({"t1": [NONE_LEFT, ev(10, "SEM_TAKEN", THING)], "t2": [ev(5, "SEM_POST", THING)]})
    assert verdict_of(trace).violations == []
    part = tmp_path / "part.ptt"
    write_trace(Traceset(trace), part, Part(threads=frozenset({0})))
    verdict = verdict_of(part)
    assert verdict.violations == []
    assert len(verdict.gaps) == 1


def test_a_process_that_lives_on_proves_a_lost_wake_up(build: Callable[..., Path]) -> None:
    """A process without later events may have been stopped."""
    case = CASES["signal"].broken
    trace = build({"t1": case["t1"], "t2": case["t2"][:-2]})
    assert verdict_of(trace).violations == []
    with (trace / "info" / "processes.jsonl").open("a") as file:
        json.dump({"exit": {"process": 0, "alive_unix_ns": BOOT + T0 + END}}, file)
    violations = verdict_of(trace).violations
    assert [(v.rule, v.severity) for v in violations] == [("cond-wakeup", "warning")]
    assert verdict_of(trace, patience_ns=60 * S).violations == []
    # A part of the trace ends before the process does.
    part = trace.with_name("part.ptt")
    write_trace(Traceset(trace), part, Part())
    assert verdict_of(part).violations == []


def test_shared_memory(build: Callable[..., Path]) -> None:
    """Processes outside the trace may use objects in shared memory."""
    trace = build(CASES["semaphore"].broken)
    assert len(verdict_of(trace).violations) == 1
    part = {"start": hex(THING & ~0xFFF), "end": hex(THING | 0xFFF), "file": "x", "offset": 0}
    with (trace / "info" / "processes.jsonl").open("a") as file:
        json.dump({"shared": {"process": 0, "shared": [part]}}, file)
    verdict = verdict_of(trace)
    assert verdict.violations == []
    assert verdict.skipped["process-shared"] > 0


def test_a_repeated_violation_is_counted(build: Callable[..., Path]) -> None:
    threads: Threads = {
        "t1": [event for at in range(5) for event in (taken(at * 1000), free(at * 1000 + 100))],
        "t2": [event for at in range(5) for event in (taken(at * 1000 + 50), free(at * 1000 + 60))],
    }
    (violation,) = verdict_of(build(threads)).violations
    assert violation.count == 5
    assert [event.ts_ns for event in violation.events] == [0, 50, 100]


# ---- the command ----


def test_command(build: Callable[..., Path], ptt: Ptt) -> None:
    trace = build(CASES["mutex"].broken)
    out = json.loads(ptt("verify", "--format", "json", trace, status=1).stdout)
    assert set(out) == {"violations", "checked", "skipped", "gaps"}
    assert fits(Verify, out)
    (violation,) = out["violations"]
    assert {"rule", "severity", "pid", "threads", "objects", "sites", "ts_ns"} < set(violation)
    assert {"message", "count", "events"} < set(violation)
    assert (violation["rule"], violation["pid"]) == ("mutex-exclusion", 100)
    assert violation["threads"] == [1, 2]
    assert violation["objects"] == [hex(LOCK)]
    assert " ".join(e["event"] for e in violation["events"]) == "MUTEX_TAKEN MUTEX_TAKEN MUTEX_FREE"
    assert "thread 2 was given it at 0.000000050 s" in violation["message"]
    assert set(out["checked"]) == set(libptttrack_promises.rules())
    text = ptt("verify", trace, status=1).stdout
    assert "error: mutex-exclusion" in text
    assert "thread 1 took mutex" in text
    assert "not judged" not in text
    rows = list(csv.reader(io.StringIO(ptt("verify", "--format", "csv", trace, status=1).stdout)))
    assert [len(row) for row in rows] == [11, 11]
    good = build(CASES["mutex"].kept)
    assert "no broken promise" in ptt("verify", good).stdout
    assert ptt("verify", good / "nothing", status=2).stderr.startswith("ptt: error: ")


def test_rules_know_their_routines() -> None:
    """Each routine with a result, except for a few, has a list of errors that it may return."""
    routines = {
        event.name.removesuffix("_OUT")
        for event in BY_ID.values()
        if event.name.endswith("_OUT") and any(f.name == "result" for f in event.fields)
    }
    text = (ROOT / "native" / "tracker" / "promises" / "results.c").read_text(encoding="utf-8")
    missing = {name for name in routines if f'"{name}"' not in text}
    others = {
        name for name in missing if name.startswith(("MTX_", "CND_", "THRD_", "FUTEX_", "SYS_"))
    }
    assert missing - others == {"THREAD_SETNAME", "SEM_OPEN", "SEM_CLOSE", "SEM_UNLINK"}
