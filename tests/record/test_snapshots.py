"""Snapshots of the flight recorder: consistent copies while the program goes on."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nptltrace._files.trace_directories import candidate_of, make
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.snapshots.candidates import Candidate
from nptltrace.recording.snapshots.requests import Request, ask
from tests.record.packets import session, streams
from tests.support import ROOT, small_file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Compiler, Ptt

USER = 12 << 6
LOOP = ("--stream-full-policy", "loop", "--buffer-budget", "1M")


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


class Running:
    """A flight recorder, with the program `numbered` under it."""

    def __init__(
        self,
        ptt: Ptt,
        program: Path,
        directory: Path,
        *options: str,
        env: dict[str, str | None] | None = None,
    ) -> None:
        self.trace = directory / "run.ptt"
        file = directory / "words"
        file.write_bytes(bytes(64))
        self.words = np.memmap(file, np.uint64, "r+")
        self._messages = directory / "messages"
        with self._messages.open("w") as messages:
            self.recorder = subprocess.Popen(
                ptt.command("record", *LOOP, *options, "-o", self.trace, "--", program, file),
                env=ptt.environment(env), stderr=messages,
            )  # fmt: skip
        wait_until(lambda: bool((self.words[:4] > 0).all()))

    def said(self) -> str:
        """Return the messages of the recorder so far."""
        return self._messages.read_text()

    def end(self) -> str:
        """End the program, and return the messages of the recorder."""
        self.words[4] = 1
        assert self.recorder.wait(60) == 0
        return self.said()


@pytest.fixture
def running(
    ptt: Ptt, own: Callable[[str], Path], tmp_path: Path
) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(*options: str, env: dict[str, str | None] | None = None) -> Running:
        made.append(Running(ptt, own("numbered"), tmp_path, *options, env=env))
        return made[-1]

    yield start
    for one in made:
        one.words[4] = 1
        one.recorder.wait(60)


def _numbers(trace: Path) -> dict[int, list[int]]:
    """Return the numbers of the events of each thread, in their order."""
    numbers: dict[int, list[int]] = {}
    for packets in streams(trace):
        for packet in packets:
            slots = packet.slots
            for at in np.flatnonzero((slots[:, 0] & np.uint64(1023)) == USER):
                # 16 bytes of data, in pieces of 14 bytes behind the head and the fixed fields
                data = slots[at + 2].tobytes()[2:] + slots[at + 3].tobytes()[2:4]
                thread, number = np.frombuffer(data, np.uint64)
                numbers.setdefault(int(thread), []).append(int(number))
    return numbers


def test_nothing_is_lost_around_the_trigger(running: Callable[..., Running]) -> None:
    recording = running()
    pid = recording.recorder.pid
    for _ in range(20):
        before = recording.words[:4].copy()
        trace, text = ask(pid, None)
        after = recording.words[:4].copy()
        numbers = _numbers(trace)
        assert sorted(numbers) == [0, 1, 2, 3]
        for thread, own in numbers.items():
            # All events that were sent before the request, without a gap.
            assert own == list(range(own[0], own[-1] + 1))
            assert int(before[thread]) <= own[-1] <= int(after[thread]) + 1
        facts = session(trace)
        assert (facts["state"], facts["snapshot"]) == ("complete", "ptt snapshot")
        assert text.startswith(f"{facts['events']} events (0 lost")
    messages = recording.end()
    assert "recorded" in messages
    assert session(recording.trace)["state"] == "complete"
    uuids = {session(trace)["uuid"] for trace in recording.trace.parent.glob("run*.ptt")}
    assert len(uuids) == 21


def test_commands_read_a_snapshot(
    ptt: Ptt, running: Callable[..., Running], tmp_path: Path
) -> None:
    recording = running()
    done = ptt("snapshot", "-o", tmp_path / "mine", str(recording.recorder.pid))
    assert f"snapshot {tmp_path / 'mine'}: " in done.stderr
    assert "is not empty" in ptt(
        "snapshot", "-o", tmp_path / "mine", str(recording.recorder.pid), status=2
    ).stderr  # fmt: skip
    ptt("snapshot", "--force", "-o", tmp_path / "mine", str(recording.recorder.pid))
    recording.end()
    ptt("check", tmp_path / "mine")
    ptt("verify", tmp_path / "mine")


def test_a_hundred_in_a_row_up_to_the_end(running: Callable[..., Running], tmp_path: Path) -> None:
    recording = running()
    ender = threading.Timer(0.5, lambda: recording.words.__setitem__(4, 1))
    ender.start()
    made = []
    # The program ends during a snapshot: each request is answered, or there is no recorder.
    for number in range(100):
        try:
            made.append(ask(recording.recorder.pid, tmp_path / f"s{number}")[0])
        except (PttError, UsageError):
            break
    ender.join()
    recording.end()
    assert made
    for trace in (made[0], made[-1]):
        assert all(own == list(range(own[0], own[-1] + 1)) for own in _numbers(trace).values())
    kept = sorted(path.name for path in tmp_path.glob("s*"))
    assert kept == sorted(path.name for path in made)


def test_signal_and_limits(running: Callable[..., Running]) -> None:
    recording = running("--snapshot-on", "SIGUSR1", "--max-snapshots", "1")
    first = recording.trace.with_name("run-snapshot-1.ptt")
    os.kill(recording.recorder.pid, signal.SIGUSR1)
    wait_until((first / "metadata").exists)
    second = ask(recording.recorder.pid, None)[0]  # not limited
    os.kill(recording.recorder.pid, signal.SIGUSR1)
    messages = recording.end()
    assert f"snapshot {first}: SIGUSR1: " in messages
    assert session(first)["snapshot"] == "SIGUSR1"
    assert second.name == "run-snapshot-2.ptt"
    assert "1 further reason for a snapshot came too soon" in messages


def test_without_the_trigger_the_signal_does_nothing(running: Callable[..., Running]) -> None:
    recording = running()
    os.kill(recording.recorder.pid, signal.SIGUSR1)
    ask(recording.recorder.pid, recording.trace.with_name("after"))
    assert "snapshot" not in recording.end()


def test_a_signal_beside_a_request_counts(running: Callable[..., Running], tmp_path: Path) -> None:
    """Both are pending at once; the request alone is no reason."""
    recording = running("--snapshot-on", "SIGUSR1")
    recorder, directory = recording.recorder, Path(session(recording.trace)["session_dir"])
    ask(recorder.pid, tmp_path / "alone")
    recorder.send_signal(signal.SIGSTOP)
    recorder.send_signal(signal.SIGUSR1)
    (directory / "snapshot-1.request").write_text(f'{{"output": "{tmp_path}/s", "force": false}}')
    recorder.send_signal(signal.SIGCONT)
    wait_until((directory / "snapshot-1.answer").exists)
    messages = recording.end()
    assert messages.count(": SIGUSR1: ") == 1
    assert "further reason" not in messages
    assert {path.name for path in tmp_path.glob("*snapshot*")} == {"run-snapshot-1.ptt"}


def test_a_place_with_too_long_a_name(running: Callable[..., Running], tmp_path: Path) -> None:
    recording = running()
    with pytest.raises(PttError, match="File name too long"):
        ask(recording.recorder.pid, tmp_path / ("x" * 300) / "s")
    ask(recording.recorder.pid, tmp_path / "s")
    recording.end()


def test_processes_that_cannot_be_traced_are_counted(
    running: Callable[..., Running], tmp_path: Path
) -> None:
    recording = running()
    untraced = recording.trace / ".untraced"
    untraced.write_bytes(b"12")
    assert session(ask(recording.recorder.pid, tmp_path / "s")[0])["untraced_processes"] == 2
    recording.end()
    assert session(recording.trace)["untraced_processes"] == 2


# A signal handler sends an event while a thread waits: the C library's word of the mutex is 2 then.
WAITS = """
#include <nptl_trace.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void handle(int unused)
{
    (void)unused;
    nptl_trace_say("meanwhile");
}
static void *work(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}
int main(void)
{
    pthread_t id;
    nptl_trace_say("begin");
    signal(SIGUSR2, handle);
    pthread_mutex_lock(&mutex);
    pthread_create(&id, NULL, work, NULL);
    while (*(volatile int *)&mutex != 2)
        usleep(1000);
    pthread_kill(id, SIGUSR2);
    sleep(1);
    pthread_mutex_unlock(&mutex);
    pthread_join(id, NULL);
    nptl_trace_say("end of work");
    return 0;
}
"""


def test_long_waits(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    reason = ("--sched", "auto", "--snapshot-on", "wait>100ms")
    done = ptt("record", *LOOP, *reason, "-o", tmp_path / "t", "--", compile_c(WAITS))
    # The wait was a reason once, and not again at its end.
    assert done.stderr.count("ptt: snapshot ") == 1
    assert "came too soon" not in done.stderr
    said = session(tmp_path / "t-snapshot-1")["snapshot"]
    assert "has waited" in said
    assert "for a lock" in said
    # The wait goes on at this time.
    events = ptt("view", tmp_path / "t-snapshot-1").stdout
    assert "is blocked: mutex" in events
    assert "meanwhile" in events
    assert "took mutex" in events
    assert ", result = 0" not in events
    assert "end of work" not in events


# The name of the function says that this is a lock: catalog/futexes.toml.
BRIEF = """
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int word;
__attribute__((noinline, noclone)) long _RN3std3sys14lock_contended(void)
{
    const struct timespec time = {0, 1000000};
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);

    __asm__ volatile ("" : "+r"(result));
    return result;
}
int main(void)
{
    return _RN3std3sys14lock_contended() != -1;
}
"""


def test_a_wait_between_two_looks(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    """The recorder looks every 10 ms; the wait of a millisecond for a futex begins and ends."""
    # With a reading of the processor before the end of the wait.
    reason = ("--sched", "auto", "--snapshot-on", "wait>900us")
    done = ptt("record", *LOOP, *reason, "-o", tmp_path / "t", "--", compile_c(BRIEF))
    assert "for a lock" in session(tmp_path / "t-snapshot-1")["snapshot"]
    assert done.stderr.count("ptt: snapshot ") == 1


def test_user_events(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    reasons = ("--snapshot-on", "user:end of", "--snapshot-on", "user:nothing")
    done = ptt("record", *LOOP, *reasons, "-o", tmp_path / "t", "--", compile_c(WAITS))
    assert "end of work" in ptt("view", tmp_path / "t-snapshot-1").stdout
    assert done.stderr.count("ptt: snapshot ") == 1
    assert not (tmp_path / "t-snapshot-2").exists()


DEADLOCK = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *unused)
{
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return unused;
}
int main(void)
{
    pthread_t id;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&id, NULL, one, NULL);
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return 0;
}
"""


def test_findings(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    python, *command = ptt.command(
        "record", *LOOP, "--snapshot-on", "finding", "-o", tmp_path / "t", "--",
        compile_c(DEADLOCK),
    )  # fmt: skip
    # A file of the user is no module of PTT.
    (tmp_path / "json.py").write_text("raise ImportError")
    with subprocess.Popen(
        [python, "-P", *command],
        env=ptt.environment(), cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8",
    ) as recorder:  # fmt: skip
        wait_until((tmp_path / "t-snapshot-1" / "metadata").exists)
        recorder.send_signal(signal.SIGTERM)
        messages = recorder.communicate(timeout=60)[1]
    assert "t-snapshot-1: finding: " in messages
    assert "deadlock" in ptt("check", tmp_path / "t-snapshot-1", status=1).stdout
    # The same finding makes no second snapshot, and no candidate stays.
    assert sorted(path.name for path in tmp_path.glob("*t*") if path.is_dir()) == [
        "t", "t-snapshot-1",
    ]  # fmt: skip


def _numpy(directory: Path, text: str) -> dict[str, str | None]:
    """Return an environment with another NumPy."""
    (directory / "numpy.py").write_text(text)
    return {"PYTHONPATH": f"{directory}:{ROOT / 'src'}"}


def test_a_check_that_cannot_work(running: Callable[..., Running], tmp_path: Path) -> None:
    env = _numpy(tmp_path, "raise ImportError('no NumPy here')")
    recording = running("--snapshot-on", "finding", env=env)
    wait_until(lambda: "findings make no snapshots from now on" in recording.said())
    assert "ptt check failed: " in recording.end()
    assert not list(tmp_path.glob(".*candidate"))


def test_a_check_that_takes_too_long(running: Callable[..., Running], tmp_path: Path) -> None:
    env = _numpy(tmp_path, "import time\ntime.sleep(600)")
    recording = running("--snapshot-on", "finding", env=env)
    candidate = candidate_of(recording.trace)
    wait_until((candidate / "metadata").exists)
    recorder = recording.recorder

    def interrupted() -> bool:
        recorder.send_signal(signal.SIGINT)
        return recorder.poll() is not None

    recording.words[4] = 1
    wait_until(interrupted)
    assert "the last check for findings was not over" in recording.said()
    assert not candidate.exists()


def test_a_check_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(candidate_of(tmp_path / "t"), force=False)[0].close()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "no process")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(PttError, match="no process"):
        Candidate(tmp_path / "t", 0.0)
    assert not list(tmp_path.iterdir())


def test_an_answer_without_room(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", "16k") as small:
        (small / "snapshot-1.request").write_text("{}")
        with pytest.raises(OSError, match="No space"):
            (small / "full").write_bytes(bytes(1 << 16))
        Request(small, "snapshot-1.request").answer(error="there is an error")
        assert sorted(os.listdir(small)) == ["full", "snapshot-1.answer"]  # noqa: PTH208


def test_a_full_disk(running: Callable[..., Running], tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", "100k") as small:
        recording = running()
        with pytest.raises(PttError, match="No space left on device"):
            ask(recording.recorder.pid, small / "s")
        assert not (small / "s").exists()
        # The recording goes on.
        ask(recording.recorder.pid, tmp_path / "s")
        recording.end()


def test_requests_are_not_trusted(ptt: Ptt, running: Callable[..., Running]) -> None:
    recording = running()
    directory = Path(session(recording.trace)["session_dir"])
    requests = ('{"output": "relative", "force": 1}', "[" * 9999, '{"output": 7}', "")
    for number, text in enumerate(requests):
        answer = directory / f"snapshot-{number}.answer"
        answer.with_suffix(".request").write_text(text)
        wait_until(answer.exists)
        assert '"error"' in answer.read_text()
    recording.end()
    assert not directory.exists()
    assert "no process" in ptt("snapshot", str(recording.recorder.pid), status=2).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--snapshot-on", "finding"], "needs --stream-full-policy loop"),
        ([*LOOP, "--max-snapshots", "3"], "--max-snapshots needs --snapshot-on"),
        ([*LOOP, "--snapshot-on", "SIGUSR1", "--max-snapshots", "0"], "must be 1 or more"),
        ([*LOOP, "--snapshot-on", "wait>0"], "is not finding"),
        ([*LOOP, "--snapshot-on", "wait>1s", "--snapshot-on", "wait>2s"], "can be given once"),
        ([*LOOP, "--snapshot-on", "user:"], "is not finding"),
        ([*LOOP, "--handler", "text", "--snapshot-on", "finding"], "needs handler ring"),
    ],
)
def test_options_that_make_no_sense(ptt: Ptt, options: list[str], message: str) -> None:
    assert message in ptt("record", *options, "--", "true", status=2).stderr


def test_a_recorder_that_is_no_flight_recorder(ptt: Ptt, tmp_path: Path) -> None:
    with subprocess.Popen(
        ptt.command("record", "-o", tmp_path / "t", "--", "sleep", "60"),
        env=ptt.environment(), stderr=subprocess.DEVNULL,
    ) as recorder:  # fmt: skip
        wait_until((tmp_path / "t" / "metadata").exists)
        done = ptt("snapshot", str(recorder.pid), status=2)
        assert "is not recorded by a flight recorder" in done.stderr
        recorder.send_signal(signal.SIGTERM)
