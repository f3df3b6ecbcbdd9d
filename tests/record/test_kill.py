"""kill -9 of the program, the recorder, or both: the trace has each committed event once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nptltrace._binding.headers.ptt_abi import Segment
from tests.record.packets import FREE, babeltrace_count, pairs_by_mutex, session, streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Ptt

THREADS = 4
MB = 1_000_000


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.005)


@dataclass
class Running:
    """A recording of a program that runs until it is killed."""

    recorder: subprocess.Popen[str]
    program: int
    trace: Path
    words: Path

    def progress(self) -> list[int]:
        """Return each thread's own count of its rounds of lock and unlock."""
        counts = np.fromfile(self.words, dtype="<u8")[::8][:THREADS]
        return sorted(int(n) for n in counts)

    def goes_on(self) -> None:
        """Wait until each thread has made progress."""
        before = self.progress()
        wait_until(
            lambda: all(now > then for now, then in zip(self.progress(), before, strict=True))
        )


@pytest.fixture
def start(ptt: Ptt, tmp_path: Path, own: Callable[[str], Path]) -> Iterator[Callable[..., Running]]:
    """Starter of recordings; the fixture kills every process that still runs at the end."""
    running: list[Running] = []

    def begin(*options: str) -> Running:
        trace, words = tmp_path / "t", tmp_path / "words"
        command = [str(own("counted")), str(words), str(THREADS), "0"]
        recorder = subprocess.Popen(
            ptt.command("record", "-o", trace, *options, "--", *command),
            env=ptt.environment(),
            stderr=subprocess.PIPE,
            text=True,
            # Recordings of tests beside this one would be the first to name the killed recording.
            start_new_session=True,
        )
        while not words.exists() or words.stat().st_size < 4096:
            time.sleep(0.005)
        children = f"/proc/{recorder.pid}/task/{recorder.pid}/children"
        with open(children, encoding="ascii") as file:  # noqa: PTH123
            program = int(file.read().split()[0])
        running.append(Running(recorder, program, trace, words))
        while min(running[-1].progress()) == 0:
            time.sleep(0.005)
        time.sleep(random.random() * 0.2)  # noqa: S311
        return running[-1]

    yield begin
    for run in running:
        for pid in (run.recorder.pid, run.program):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.recorder.communicate()
        ptt("recover", run.trace, status=None)


BUFFERS = [(), ("--buffer-budget", "512K"), ("--max-file-size", "64M")]


def check(run: Running, committed: list[int]) -> None:
    pairs = pairs_by_mutex(run.trace)
    assert len(pairs) == THREADS
    assert all(there >= message for there, message in zip(pairs, committed, strict=True))
    assert babeltrace_count(run.trace) == session(run.trace)["events"]


@pytest.mark.parametrize("options", BUFFERS, ids=str)
def test_committed_events_survive_a_killed_program(
    start: Callable[..., Running], options: tuple[str, ...]
) -> None:
    run = start(*options)
    os.kill(run.program, signal.SIGKILL)
    run.recorder.wait(200)
    assert run.recorder.returncode == 137
    check(run, run.progress())


@pytest.mark.parametrize("options", BUFFERS, ids=str)
def test_committed_events_survive_a_killed_recorder(
    start: Callable[..., Running], ptt: Ptt, options: tuple[str, ...]
) -> None:
    run = start(*options)
    committed = run.progress()
    run.recorder.kill()
    run.recorder.wait()
    done = ptt("recover", run.trace)
    assert "ptt: recovered " in done.stderr
    # The program does not notice.
    run.goes_on()
    check(run, committed)
    assert session(run.trace)["state"] == "recovered"
    assert "nothing to recover" in ptt("recover", run.trace).stderr


@pytest.mark.parametrize("options", [("--buffer-budget", "512K"), ("--handler", "shared")], ids=str)
def test_threads_go_on_while_the_recorder_is_stopped(
    start: Callable[..., Running], options: tuple[str, ...]
) -> None:
    """Threads do not wait for the recorder forever, and it records them again when it continues."""
    run = start(*options)
    with (Path(session(run.trace)["session_dir"]) / "segment").open("r+b", 0) as segment:
        segment.seek(Segment.patience_ms.offset)  # type: ignore[attr-defined]
        segment.write((200).to_bytes(4, sys.byteorder))
    run.recorder.send_signal(signal.SIGSTOP)
    # More than the buffers hold.
    wanted = max(run.progress()) + 500_000
    wait_until(lambda: min(run.progress()) > wanted)
    before = sum(path.stat().st_size for path in run.trace.glob("stream-*"))
    run.recorder.send_signal(signal.SIGCONT)
    wait_until(
        lambda: sum(path.stat().st_size for path in run.trace.glob("stream-*")) > before + 40 * MB
    )
    os.kill(run.program, signal.SIGKILL)
    run.recorder.wait(60)
    assert session(run.trace)["state"] == "complete"
    lost = {cause: count for cause, count in session(run.trace)["lost"].items() if count}
    assert lost.pop("recorder_stopped") > 0
    assert lost.keys() <= {"unfinished"}
    assert run.recorder.stderr
    assert "recorder stood still" in run.recorder.stderr.read()


@pytest.mark.parametrize("options", BUFFERS, ids=str)
def test_committed_events_survive_when_both_are_killed(
    start: Callable[..., Running], ptt: Ptt, options: tuple[str, ...]
) -> None:
    run = start(*options)
    committed = run.progress()
    for pid in random.sample([run.recorder.pid, run.program], 2):
        os.kill(pid, signal.SIGKILL)
    run.recorder.wait()
    directory = json.loads((run.trace / "info" / "session.json").read_text())["session_dir"]
    ptt("recover", directory)
    check(run, committed)


def test_a_recorder_at_work_is_not_disturbed(start: Callable[..., Running], ptt: Ptt) -> None:
    run = start()
    assert "still at work" in ptt("recover", run.trace, status=2).stderr
    assert session(run.trace)["state"] == "running"


# Another test's recording would name it first.
@pytest.mark.alone
def test_the_next_recording_names_one_that_was_killed(
    start: Callable[..., Running], ptt: Ptt, tmp_path: Path
) -> None:
    run = start()
    for pid in (run.recorder.pid, run.program):
        os.kill(pid, signal.SIGKILL)
    run.recorder.wait()
    done = ptt("record", "-o", tmp_path / "other", "--", "true")
    assert f"`ptt recover {run.trace}` finishes it; with --remove, it removes it\n" in done.stderr
    directory = Path(session(run.trace)["session_dir"])
    assert directory.is_dir()
    assert ptt("recover", "--remove", run.trace).stderr == f"ptt: removed {run.trace}\n"
    assert not run.trace.exists()
    assert not directory.exists()
    # A trace that is whole stays.
    assert "nothing to recover" in ptt("recover", "--remove", tmp_path / "other").stderr
    ptt("stat", tmp_path / "other")


def test_recover_refuses_other_directories(ptt: Ptt, tmp_path: Path) -> None:
    assert "neither" in ptt("recover", tmp_path, status=2).stderr
    assert "not a directory" in ptt("recover", tmp_path / "nothing", status=2).stderr


def test_levels_of_a_running_process_can_be_changed(
    start: Callable[..., Running], ptt: Ptt
) -> None:
    run = start("--level", "mutex=1,cond=4")
    message = ptt("level", str(run.program)).stdout
    assert "mutex=1" in message
    assert "cond=4" in message
    ptt("level", str(run.program), "mutex=2")
    run.goes_on()
    ptt("level", "--group", str(run.program), "LEVEL_NONE")
    assert "mutex=0" in ptt("level", str(run.program)).stdout
    run.goes_on()
    os.kill(run.program, signal.SIGTERM)
    run.recorder.wait(200)
    slots = [packet.slots for packets in streams(run.trace) for packet in packets]
    freed = sum(int((part[:, 0] & 1023 == FREE).sum()) for part in slots)
    assert 0 < freed < sum(run.progress())


def test_levels_of_unrecorded_processes_cannot_be_changed(ptt: Ptt) -> None:
    assert "is not being recorded" in ptt("level", str(os.getpid()), "1", status=2).stderr
    assert "no process" in ptt("level", "999999999", "1", status=2).stderr


def test_commands_know_that_the_recorder_is_dead(start: Callable[..., Running], ptt: Ptt) -> None:
    run = start()
    # Otherwise, commands that show each event of an endless program would never end.
    os.kill(run.program, signal.SIGSTOP)
    follower = subprocess.Popen(
        ptt.command("view", "-f", run.trace),
        env=ptt.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    run.recorder.kill()
    run.recorder.wait()
    message = f"its recorder was killed: `ptt recover {run.trace}` finishes the trace\n"
    # No command waits for events that cannot come, whether it started before or after the kill.
    assert follower.communicate(timeout=300)[1].endswith(message)
    assert follower.returncode == 0
    for words in (("view", "-f"), ("check", "--follow"), ("top",), ("report",)):
        done = ptt(*words, run.trace)
        assert done.stderr.endswith(message), words
    stat = ptt("stat", "--format", "json", run.trace)
    assert stat.stderr.endswith(message)
    assert json.loads(stat.stdout)["state"] == "killed"
    ptt("recover", run.trace)
    stat = ptt("stat", "--format", "json", run.trace)
    assert message not in stat.stderr
    assert json.loads(stat.stdout)["state"] == "recovered"
