"""kill -9 at random moments: every committed event is in the trace once, and in order."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nptltrace
from tests.real.real import babeltrace_count, need, wait_until
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from tests.support import Compiler, Ptt

THREADS = 4
MUTEXES = 251
MUTEX_SIZE = 40
# The full test has 100 rounds. Each run of the tests does a different part of them.
ROUNDS = int(os.environ.get("PTT_TEST_KILLS", "12"))
SEED = int(os.environ.get("PTT_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
VICTIMS = ("program", "recorder", "both")
OPTIONS = ((), ("--buffer-budget", "1M"), ("--max-file-size", "8M"))
COUNTED_TWICE = 12  # babeltrace2 takes longer than all other steps


class Progress:
    """The figures that the program publishes in its file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _words(self) -> NDArray[np.uint64]:
        if not self._path.exists() or self._path.stat().st_size < 4096:
            return np.zeros((64, 8), np.uint64)
        return np.fromfile(self._path, "<u8").reshape(-1, 8)

    @property
    def pid(self) -> int:
        return int(self._words()[0, 0])

    @property
    def begun(self) -> int:
        return int(self._words()[0, 2])

    def threads(self) -> list[tuple[int, int, int]]:
        """Return the thread id, the address of the first mutex and the number of events of each
        thread."""
        return [(int(r[0]), int(r[1]), int(r[2])) for r in self._words()[1 : THREADS + 1]]

    def moved(self, since: list[tuple[int, int, int]]) -> bool:
        """Return whether all threads have made new events."""
        return all(now[2] > then[2] for now, then in zip(self.threads(), since, strict=True))


def recorded(trace: Path) -> dict[int, NDArray[Any]]:
    """Return all acquisitions and releases in order, by thread: object, plus 1 for an
    acquisition."""
    found: dict[int, list[NDArray[Any]]] = {}
    for batch in nptltrace.open(trace).batches():
        event = batch["event"].combine_chunks()
        event = event.chunk(0) if hasattr(event, "chunk") else event
        names, index = event.dictionary.to_pylist(), event.indices.to_numpy()
        wanted = np.array([n in {"MUTEX_TAKEN", "MUTEX_FREE"} for n in names])[index]
        taken = np.array([n == "MUTEX_TAKEN" for n in names], np.uint64)[index][wanted]
        tids = batch["tid"].to_numpy()[wanted]
        values = batch["object"].to_numpy()[wanted] + taken
        for tid in np.unique(tids):
            found.setdefault(int(tid), []).append(values[tids == tid])
    return {tid: np.concatenate(parts) for tid, parts in found.items()}


def check(trace: Path, published: list[tuple[int, int, int]], *, dead: bool) -> None:
    """Compare the trace with the published figures.

    Args:
        trace: The trace.
        published: The figures, from `Progress.threads`.
        dead: Whether the program died before its recorder and before the figures were read.
    """
    found = recorded(trace)
    for tid, first, events in published:
        values = found.get(tid, np.zeros(0, np.uint64)) if tid else np.zeros(0, np.uint64)
        assert len(values) >= events, f"thread {tid}: {len(values)} of {events} events"
        assert not dead or len(values) <= events + 1
        number = np.arange(len(values), dtype=np.uint64)
        expected = first + number // 2 % MUTEXES * MUTEX_SIZE + (1 - number % 2)
        assert np.array_equal(values, expected.astype(np.uint64)), f"thread {tid}: another order"


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_dead(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    return text.rpartition(") ")[2][0] in "ZX"


class Round:
    """One recording, one kill.

    Args:
        ptt: The runner of `ptt`.
        directory: Where the trace and the published progress are.
        chance: The random generator that decides.
        number: The number of the round.
    """

    def __init__(self, ptt: Ptt, directory: Path, chance: random.Random, number: int) -> None:
        self.victim = VICTIMS[number % 3]
        self.options = chance.choice(OPTIONS)
        self.moment_s = chance.choice((0.0, 0.02, 0.1, 0.4)) * chance.random()
        self.goes_on = chance.random() < 0.5
        self.dies_first = self.victim == "program" or (
            self.victim == "both" and chance.random() < 0.5
        )
        self.trace = directory / f"{number}.ptt"
        self.file = directory / f"progress-{number}"
        self.progress = Progress(self.file)
        self._ptt = ptt

    def start(self, program: Path) -> None:
        """Record until the moment of the kill."""
        print(self.victim, "after", self.moment_s, "s", self.options)
        command = ["record", "-o", self.trace, *self.options, "--", program, self.file, "4"]
        self.recorder = subprocess.Popen(
            self._ptt.command(*command), env=self._ptt.environment(), stderr=subprocess.DEVNULL
        )
        wait_until(lambda: self.progress.pid != 0, "the program")
        if self.moment_s > 0.01:
            wait_until(lambda: self.progress.begun == THREADS, "its threads")
        time.sleep(self.moment_s)

    def kill(self) -> list[tuple[int, int, int]]:
        """Kill, recover, and return the figures at the time of the kill."""
        pid, published = self.progress.pid, self.progress.threads()
        if self.victim == "recorder":
            kill(self.recorder.pid)
        else:
            both = [pid, self.recorder.pid][:: 1 if self.dies_first else -1]
            for each in both if self.victim == "both" else [pid]:
                kill(each)
            wait_until(lambda: is_dead(pid), "death")
            # Without a collector, later events that find no room are lost and counted.
            published = self.progress.threads() if self.dies_first else published
        if self.victim == "program":
            assert self.recorder.wait(200) == 137
            return published
        self.recorder.wait(200)
        if self.victim == "recorder" and self.goes_on:
            # The program goes on without a collector.
            wait_until(lambda: self.progress.moved(published), "progress")
        self._ptt("recover", self.trace)
        kill(pid)
        wait_until(lambda: is_dead(pid), "death")
        return published

    def end(self) -> None:
        """Leave no process."""
        if pid := self.progress.pid:
            kill(pid)
        self.recorder.kill()
        self.recorder.wait()


@pytest.fixture
def rounds(ptt: Ptt, tmp_path: Path) -> Iterator[Generator[Round]]:
    """The rounds; after each round, all its processes are killed."""
    chance = random.Random(SEED)  # noqa: S311 -- nothing secret

    def each() -> Generator[Round]:
        for number in range(ROUNDS):
            current = Round(ptt, tmp_path, chance, number)
            try:
                yield current
            finally:
                current.end()
            for path in current.trace.glob("stream-*"):  # only after a successful round
                path.unlink()

    generator = each()
    yield generator
    generator.close()


@pytest.mark.slow
@pytest.mark.timeout(300 + 20 * ROUNDS)
def test_a_kill_loses_no_committed_event(
    ptt: Ptt, compile_c: Compiler, rounds: Iterator[Round]
) -> None:
    need("babeltrace2")
    print("PTT_TEST_SEED", SEED)
    program = compile_c(ROOT / "tests" / "real" / "publishing.c")
    for number, this in enumerate(rounds):
        this.start(program)
        published = this.kill()
        check(this.trace, published, dead=this.dies_first)
        stat = json.loads(ptt("stat", "--format", "json", this.trace).stdout)
        assert stat["damage_bytes"] == 0
        assert stat["state"] == ("complete" if this.victim == "program" else "recovered")
        assert stat["lost"] == 0 or not this.dies_first
        if number < COUNTED_TWICE:
            assert babeltrace_count(this.trace, lost=stat["lost"] > 0) == stat["events"]


def test_a_kill_between_creation_and_first_write_of_a_file(
    compile_c: Compiler, ptt: Ptt, tmp_path: Path, trace_dir: Path
) -> None:
    ready = tmp_path / "ready"
    program = compile_c(f"""
        #include <fcntl.h>
        #include <pthread.h>
        #include <signal.h>
        #include <unistd.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        int main(void)
        {{
            kill(getppid(), SIGSTOP); /* the recorder writes nothing any more */
            for (int i = 0; i < 100; i++) {{
                pthread_mutex_lock(&mutex);
                pthread_mutex_unlock(&mutex);
            }}
            close(open("{ready}", O_CREAT, 0600));
            pause();
            return 0;
        }}
    """)
    recorder = subprocess.Popen(
        ptt.command("record", "-o", trace_dir, "--", program),
        env=ptt.environment(),
        stderr=subprocess.DEVNULL,
    )
    wait_until(ready.exists, "the program")
    children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
    pid = int(children.read_text(encoding="ascii"))
    recorder.kill()
    recorder.wait()
    # The state after a kill at the start of the first packet.
    (trace_dir / "stream-00000").write_bytes(b"")
    kill(pid)
    wait_until(lambda: is_dead(pid), "death")
    ptt("recover", trace_dir)
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["event_types"]["MUTEX_TAKEN"] == 100
    assert stat["event_types"]["MUTEX_FREE"] == 100
    assert not [name for name in stat["event_types"] if name.startswith("EVENT_")]
    assert babeltrace_count(trace_dir) == stat["events"]
