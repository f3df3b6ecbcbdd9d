"""Tracer events in POSIX streams, program events in recordings, and logs read as traces."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.posix.building import SUITE, Builder
from tests.support import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder


@pytest.fixture(scope="module")
def program(native_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = Builder(native_stage, tmp_path_factory.mktemp("tracer"))
    return build("tracer", [SUITE / "programs" / "tracer.c"])


@pytest.fixture
def log(program: Path, native_stage: Path, tmp_path: Path) -> Path:
    """A log with the events of the program and of the thread library."""
    path = tmp_path / "run.log"
    environment = clean_environment(
        LD_PRELOAD=str(native_stage / "lib/libnptltrace.so"), PTHREAD_NPTL_TRACE="posix:::2"
    )
    subprocess.run([program, path], env=environment, check=True, timeout=60)
    return path


def events(ptt: Ptt, trace: Path) -> list[dict[str, Any]]:
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_a_log_holds_events_of_program_and_threads(log: Path, ptt: Ptt) -> None:
    """The program's own events and the events of its threads are in order of time."""
    recorded = events(ptt, log)
    own = [event["data"] for event in recorded if event["event"] == "POSIX_TRACE_EVENT"]
    assert "begin" in own
    assert "end" in own
    names = [event["event"] for event in recorded]
    ends = [
        at for at, event in enumerate(recorded)
        if event["event"] == "POSIX_TRACE_EVENT" and event["data"] in {"begin", "end"}
    ]  # fmt: skip
    assert ends[0] < names.index("NEW_THREAD_CREATED") < names.index("THREAD_JOIN_OUT") < ends[1]
    times = [int(str(event["ts_ns"])) for event in recorded]
    assert times == sorted(times)


def test_a_log_names_its_event_types(log: Path, ptt: Ptt) -> None:
    texts = [str(event["data"]) for event in events(ptt, log) if event["event"] == "USER"]
    assert any(text.endswith("is mine") for text in texts)
    assert any(text.endswith("is posix_trace_start") for text in texts)


def test_report_reads_a_log(log: Path, ptt: Ptt) -> None:
    """The wait for the mutex is reported as in every recording."""
    report = json.loads(ptt("report", "--format", "json", log).stdout)
    assert any(
        found["kind"] == "mutex" and found["waits"] == 1 and found["threads"] == 2
        for found in report["objects"]
    )


def test_stat_and_sql_read_a_log(log: Path, ptt: Ptt) -> None:
    assert ptt("stat", log).stdout.startswith(f"{log}\n")
    stat = json.loads(ptt("stat", "--format", "json", log).stdout)
    query = "select count(*) as n from events where event = 'MUTEX_TAKEN'"
    rows = json.loads(ptt("sql", "--format", "json", log, query).stdout)
    assert len(stat["processes"]) == 1
    assert stat["event_types"]["MUTEX_TAKEN"] == rows[0]["n"] > 1


def test_a_log_becomes_a_trace_for_babeltrace2(log: Path, ptt: Ptt, tmp_path: Path) -> None:
    """A copy of the log is a trace that babeltrace2 can read."""
    copy = tmp_path / "copy.ptt"
    ptt("cut", "--from", "0", "-o", copy, log)
    assert [e["ts_ns"] for e in events(ptt, copy)] == [e["ts_ns"] for e in events(ptt, log)]
    if not shutil.which("babeltrace2"):
        pytest.skip("no babeltrace2")
    done = subprocess.run(
        ["babeltrace2", copy], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert len(done.stdout.splitlines()) == len(events(ptt, log))


@pytest.mark.parametrize("content", [b"", b"no log", b"PTXXBLK1" + bytes(200)])
def test_damaged_logs_are_refused(content: bytes, ptt: Ptt, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    done = ptt("stat", path, status=2)
    assert done.stderr.startswith("ptt: error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_posix_events_go_to_a_recording(
    handler: str, program: Path, record: Recorder, ptt: Ptt
) -> None:
    """Without a stream, events of <trace.h> go to the recording, with the site of their call."""
    trace = record(program, options=("--handler", handler))
    own = [event for event in events(ptt, trace) if event["event"] == "POSIX_TRACE_EVENT"]
    assert [event["data"] for event in own] == ["begin", "end"]
    assert all("main" in str(event["site_name"]) for event in own)
