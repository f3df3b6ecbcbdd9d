"""Sleeping calls do the same as untraced, and are reported if they matter."""

from __future__ import annotations

import json
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest

import nptltrace
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Recorder

MS = 1_000_000
CATALOGUE = (ROOT / "catalog" / "sleeps.toml").read_text(encoding="utf-8")
CALLS = [call["name"] for call in tomllib.loads(CATALOGUE)["call"]]


@pytest.mark.parametrize(("how", "level"), [("held", "2"), ("free", "2"), ("held", "3")])
def test_sleeping_calls_behave_as_untraced(
    how: str, level: str, program: Callable[[str], Path], ptt: Ptt, tmp_path: Path
) -> None:
    sleeps, trace = program("sleeps"), tmp_path / "run.ptt"
    outputs: list[str] = []
    for name in ("plain", "traced"):
        place = tmp_path / name
        place.mkdir()
        command = [str(sleeps), how, str(place)]
        if name == "traced":
            command = ptt.command("record", "-q", "-l", level, "-o", trace, "--", *command)
        done = subprocess.run(
            command, env=ptt.environment(), capture_output=True, encoding="utf-8", check=True,
            timeout=60,
        )  # fmt: skip
        outputs.append(done.stdout)
    assert outputs[0].count("cancelled 1") >= 3 * 26
    assert outputs[1] == outputs[0]
    types = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    if how == "free":
        assert "SYS_CALL_IN" not in types
        return
    assert types["SYS_CALL_IN"] == types["SYS_CALL_OUT"]
    message = ptt("view", "--event", "SYS_CALL_IN", trace).stdout
    mq = "mq_receive: " in outputs[0]
    missing = [call for call in CALLS if f" calls {call}," not in message]
    assert not [call for call in missing if mq or not call.startswith("mq_")]


def _asleep(trace: Path) -> list[tuple[str, int]]:
    rows = nptltrace.open(trace).table("states").to_pylist()
    return [(row["call"], row["dur_ns"]) for row in rows if row["state"] == "asleep"]


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize("sched", ["auto", "none"])
def test_a_sleep_with_a_lock_names_its_call(
    sched: str, record: Recorder, program: Callable[[str], Path], ptt: Ptt
) -> None:
    trace = record(program("sleeping_holder"), options=("--sched", sched))
    [(call, slept)] = _asleep(trace)
    assert call == "nanosleep"
    assert slept >= 60 * MS
    checked = json.loads(ptt("check", "--format", "json", trace, status=1).stdout)
    [found] = [finding for finding in checked["findings"] if finding["kind"] == "sleeping-holder"]
    assert " ms in nanosleep at nap+" in found["message"]
    assert " while it held mutex hot, taken at main+" in found["message"]
    assert [event["text"].split(" in ")[-1] for event in found["events"]][1] == "nanosleep"


@pytest.mark.usefixtures("native_in_process")
def test_level_3_records_all_sleeps(record: Recorder, program: Callable[[str], Path]) -> None:
    trace = record(program("sleeping_holder"), options=("-l", "1,sys=3"))
    sleeps = sorted(slept for _, slept in _asleep(trace))
    assert len(sleeps) == 2
    assert sleeps[0] >= 30 * MS
    assert sleeps[1] >= 60 * MS


@pytest.mark.usefixtures("native_in_process")
def test_a_sleep_that_never_ends_is_recorded(
    record: Recorder, program: Callable[[str], Path]
) -> None:
    trace = record(program("sleeping_holder"), "hangs", status=None)
    [(call, slept)] = _asleep(trace)
    assert call == "read"
    assert slept >= 900 * MS


@pytest.mark.usefixtures("native_in_process")
def test_a_jump_out_of_a_sleep_ends_the_sleep(
    record: Recorder, program: Callable[[str], Path]
) -> None:
    """The sleep ends with its thread's next event, and the time after it is no sleep."""
    trace = record(program("sleeping_holder"), "jumps")
    [(call, slept)] = _asleep(trace)
    assert call == "poll"
    assert slept >= 19 * MS
    traces = nptltrace.open(trace)
    [thread] = traces.table("threads").to_pylist()
    states = traces.table("states").to_pylist()
    assert sum(row["dur_ns"] for row in states) == thread["last_ns"] - thread["start_ns"]
