"""Damaged, half-written, empty, foreign traces: PTT analyses the intact part or prints why not."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

COMMANDS = {
    "report": ["report", "--format", "json"],
    "check": ["check", "--format", "json"],
    "verify": ["verify", "--format", "json"],
    "sql": ["sql", "--format", "json"],
    "stat": ["stat", "--format", "json"],
}
ANALYSED, REFUSED = frozenset({0, 1}), frozenset({2})
QUERY = "select (select count(*) from waits) + (select count(*) from events) as n"


@pytest.fixture(scope="module")
def whole(
    program: Callable[[str], Path], ptt: Ptt, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The trace of a program that does something of everything, in many packets."""
    trace = tmp_path_factory.mktemp("whole") / "run.ptt"
    ptt("record", "-l", "3", "-o", trace, "--", program("mix"), "7", "1500", status=None)
    return trace


@pytest.fixture
def trace(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "run.ptt")


# One process runs all commands: a start costs more than the work.
RUN_ALL = """
import contextlib, io, json, sys
from nptltrace.cli import main

came = []
for command in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(command)
    came.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(came))
"""


def analysed(
    ptt: Ptt, trace: Path, *commands: str, statuses: frozenset[int] = frozenset({0, 1, 2})
) -> list[Any]:
    """Run commands, all of them by default, and return their JSON; None where there is an error.

    Each must analyse the trace, or say in one clear line why it cannot.
    """
    vectors = [
        [*COMMANDS[name], str(trace), *([QUERY] if name == "sql" else [])]
        for name in commands or COMMANDS
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps(vectors)],
        env=ptt.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    documents = []
    for command, (status, out, err) in zip(vectors, json.loads(done.stdout), strict=True):
        assert status in statuses, (command, err)
        assert "Traceback" not in err
        if status == 2:
            (line,) = [line for line in err.splitlines() if not line.startswith("ptt: warning: ")]
            assert line.startswith("ptt: error: ")
            assert str(trace) in line
            assert out == ""
        documents.append(json.loads(out) if out else None)
    return documents


def streams(trace: Path) -> list[Path]:
    return sorted(trace.glob("stream-*"), key=lambda path: path.stat().st_size)


# ---- what a file system or a transfer leaves ----


def every_stream_cut(trace: Path, share: float) -> None:
    for file in streams(trace):
        file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


def bytes_changed(trace: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- the same damage in every run
    for file in streams(trace)[-3:]:
        data = bytearray(file.read_bytes())
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)


def a_page_of_zeros(trace: Path) -> None:
    file = streams(trace)[-1]
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(min(4096, len(data) - middle))
    file.write_bytes(data)


def rubbish_after_the_end(trace: Path) -> None:
    for file in streams(trace):
        file.write_bytes(file.read_bytes() + b"rubbish" * 100)


def streams_exchanged(trace: Path) -> None:
    first, *_, last = streams(trace)
    data = first.read_bytes()
    first.write_bytes(last.read_bytes())
    last.write_bytes(data)


def rubbish_in_the_facts(trace: Path) -> None:
    for file in (trace / "info").iterdir():
        file.write_bytes(file.read_bytes()[:-20] + b'{"\xff')


def facts_gone(trace: Path) -> None:
    shutil.rmtree(trace / "info")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut to 9 tenths": lambda trace: every_stream_cut(trace, 0.9),
    "cut to a third": lambda trace: every_stream_cut(trace, 0.33),
    "emptied": lambda trace: every_stream_cut(trace, 0),
    "bytes changed": lambda trace: bytes_changed(trace, 1),
    "other bytes changed": lambda trace: bytes_changed(trace, 2),
    "a page of zeros": a_page_of_zeros,
    "rubbish after the end": rubbish_after_the_end,
    "streams exchanged": streams_exchanged,
    "rubbish in the facts": rubbish_in_the_facts,
    "facts gone": facts_gone,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged(damage: str, trace: Path, ptt: Ptt) -> None:
    DAMAGES[damage](trace)
    analysed(ptt, trace)


# ---- intact parts are analysed ----


def test_one_stream_cut(trace: Path, ptt: Ptt) -> None:
    """The threads of the cut stream lose their last events; the other threads lose none."""

    def threads() -> dict[int, int]:
        (found,) = analysed(ptt, trace, "stat")
        return {
            thread["tid"]: thread["events"]
            for process in found["processes"]
            for thread in process["threads"]
        }

    before = threads()
    longest = streams(trace)[-1]
    longest.write_bytes(longest.read_bytes()[: longest.stat().st_size // 2])
    after = threads()
    fewer = {tid for tid in before if after.get(tid) != before[tid]}
    assert fewer
    assert len(before) - len(fewer) >= len(streams(trace)) - 1 > 2
    assert all(after.get(tid, 0) < before[tid] for tid in fewer)
    analysed(ptt, trace, statuses=ANALYSED)


def test_a_stream_lost(trace: Path, ptt: Ptt) -> None:
    (whole,) = analysed(ptt, trace, "stat")
    streams(trace)[0].unlink()
    *_, rest = analysed(ptt, trace, statuses=ANALYSED)
    assert 0 < rest["events"] < whole["events"]


# ---- directories that are no trace ----


def test_metadata_cut(trace: Path, ptt: Ptt) -> None:
    metadata = trace / "metadata"
    metadata.write_bytes(metadata.read_bytes()[:2000])
    analysed(ptt, trace, statuses=REFUSED)


def test_no_trace(ptt: Ptt, tmp_path: Path) -> None:
    empty, foreign, file = tmp_path / "empty", tmp_path / "foreign", tmp_path / "file"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "metadata").write_text("/* CTF 1.8 */ trace { major = 1; minor = 8; };\n")
    file.write_text("no trace")
    for path in (empty, foreign, file):
        analysed(ptt, path, statuses=REFUSED)


@pytest.mark.parametrize("name", ["metadata", "info/session.json", "info/processes.jsonl"])
def test_a_pipe_is_not_waited_for(ptt: Ptt, trace: Path, name: str) -> None:
    (trace / name).unlink()
    os.mkfifo(trace / name)
    analysed(ptt, trace, statuses=REFUSED if name == "metadata" else ANALYSED)


def test_lists_in_lists(ptt: Ptt, trace: Path) -> None:
    (trace / "info" / "session.json").write_text("[" * 100_000)
    (trace / "info" / "processes.jsonl").write_text("[" * 100_000 + "\n{}\n")
    analysed(ptt, trace, statuses=ANALYSED)
