"""The handler `shared`: one buffer for all threads and processes."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.recording.files.session import start_time
from nptltrace.recording.settings.options import BufferOptions
from nptltrace.recording.shared import SharedCollector, fault_lines
from tests.handlers.helpers import agreed_counts, babeltrace, stat
from tests.record.packets import babeltrace_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nptltrace._binding.libpttcollect import Collector
    from tests.support import Ptt, Recorder


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("size", ["64K", "16M"])
def test_counts_are_exact(
    ptt: Ptt, record: Recorder, program: Callable[[str], Path], threads: int, size: str
) -> None:
    # In the smallest buffer, the data wraps some 300 times, and threads wait for room.
    trace = record(
        program("lock_count"), str(threads), "30000", options=("--handler", f"shared:size={size}")
    )
    counts = agreed_counts(ptt, trace)
    assert counts["MUTEX_TAKEN"] == threads * 30000
    assert counts["MUTEX_FREE"] == threads * 30000
    assert counts["THREAD_BEGIN"] == threads
    assert counts["THREAD_END"] == threads


def test_wait_for_room_is_reported(record: Recorder, program: Callable[[str], Path]) -> None:
    trace = record(program("lock_count"), "8", "50000", options=("--handler", "shared:size=64K"))
    assert babeltrace(trace)[0]["BUFFER_WAIT"] > 0
    session = json.loads((trace / "info" / "session.json").read_text())
    assert session["wait_ns"] > 0
    assert session["state"] == "complete"


def test_dropped_events_are_counted(
    ptt: Ptt, record: Recorder, program: Callable[[str], Path]
) -> None:
    options = ("--handler", "shared:size=64K", "--when-full", "drop")
    trace = record(program("lock_count"), "8", "50000", options=options)
    counts, lost = stat(ptt, trace)
    assert lost == babeltrace_lost(trace) > 0
    counted = sum(counts.values()) + lost
    # The other events: 5 a thread, 2 of the process, and the beginnings of waits.
    assert counted >= 2 * 8 * 50000 + 5 * 8 + 2


def test_sites_objects_and_times_equal_those_of_the_ring(
    ptt: Ptt, record: Recorder, program: Callable[[str], Path]
) -> None:
    lines = []
    for handler in ("ring", "shared"):
        trace = record(program("lock_count"), "1", "3", options=("--handler", handler))
        events = [
            json.loads(line) for line in ptt("view", "--format", "jsonl", trace).stdout.splitlines()
        ]
        wanted = [event for event in events if "MUTEX" in event["event"]]
        lines.append([(e["event"], e["site_name"], e.get("object_name")) for e in wanted])
    assert lines[0] == lines[1]
    assert len(lines[0]) == 6


@pytest.mark.parametrize("size", ["64K", "16M"])
def test_signal_handlers_may_trace(
    ptt: Ptt, record: Recorder, program: Callable[[str], Path], size: str
) -> None:
    trace = record(
        program("signal_storm"), "8", "20000", options=("--handler", f"shared:size={size}")
    )
    counts = agreed_counts(ptt, trace)
    assert counts["MUTEX_TAKEN"] == counts["MUTEX_FREE"] == 8 * 20000
    assert counts["SEM_POST"] >= 8 * 20000 // 16


def test_killed_writers_hold_up_nobody(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    # If the collector waited for each killed writer as for living writers, it would take 120 s.
    options = ("--handler", "shared:size=64K", "-o", trace_dir)
    command = (program("killed_writers"), "60", "2", "100000")
    survivor = int(ptt("record", *options, "--", *command, timeout=115).stdout)
    trace = trace_dir
    facts = json.loads(ptt("stat", "--format", "json", trace).stdout)
    (first,) = (process for process in facts["processes"] if process["pid"] == survivor)
    # Each surviving thread released its mutex 100,000 times; waits for room are there too.
    lines = ptt("view", "--format", "raw", trace).stdout.splitlines()
    fields = [line.split(" ", 5) for line in lines]
    frees = Counter(tid for _, _, tid, _, name, _ in fields if name == "MUTEX_FREE")
    workers = [str(thread["tid"]) for thread in first["threads"] if thread["tid"] != first["pid"]]
    assert [frees[tid] for tid in workers] == [100000, 100000]
    times = [int(field[0]) for field in fields]
    assert times == sorted(times)
    assert babeltrace(trace)[0].total() == facts["events"] == len(lines)


def test_a_killed_recorder_leaves_a_recoverable_trace(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    command = ptt.command("record", "--handler", "shared:size=64K", "-o", trace_dir, "--")
    recorder = subprocess.Popen(
        [*command, str(program("lock_count")), "2", "2000000"],
        env=ptt.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    stream = trace_dir / "stream-shared"
    _wait_for(lambda: stream.exists() and stream.stat().st_size > 1_000_000)
    recorder.send_signal(signal.SIGKILL)
    # The program continues; its output ends when the program ends.
    assert recorder.communicate(timeout=250)[0] == b"4000000\n"
    message = ptt("recover", trace_dir).stderr
    assert "recovered" in message
    counts, lost = stat(ptt, trace_dir)
    assert lost > 0
    assert counts.total() + lost >= 8_000_000
    assert babeltrace(trace_dir)[0] == counts
    # No event twice and none missing: each thread took and released in turn until the end.
    before: dict[str, str] = {}
    for line in ptt("view", "--format", "raw", trace_dir).stdout.splitlines():
        _, _, tid, _, name, _ = line.split(" ", 5)
        if name in {"MUTEX_TAKEN", "MUTEX_FREE"}:
            assert before.get(tid) != name
            before[tid] = name


def test_senseless_arguments_and_policies_are_refused(ptt: Ptt, trace_dir: Path) -> None:
    for options in (
        ("--handler", "shared:size=much"),
        ("--handler", "shared:colour=red"),
        ("--handler", "shared:size=32G"),
        ("--handler", "shared", "--stream-full-policy", "loop"),
    ):
        message = ptt("record", *options, "-o", trace_dir, "--", "true", status=2).stderr
        assert message.startswith("ptt: error: handler shared")
        assert message.count("\n") == 1
    assert not trace_dir.exists()


# ---- the reading process alone, with writers that behave as no writer should ---------------------

UNFINISHED = 0xFFFF
MUTEX_FREE = 2 << 6 | 5
WORDS = 10


def _wait_for(what: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


PROCESS_HIGH = 280  # its place in the head of the segment


@dataclass
class Buffer:
    """The shared buffer, written to by hand."""

    memory: mmap.mmap
    collector: Collector
    trace: Path

    def __post_init__(self) -> None:
        self.head = self._u64(136)
        self.size, self.array, self.processes = (self._u64(self.head + i) for i in (0, 8, 16))
        self.reserved, self.written = self.head + 64, self.head + 128
        self.time = self._u64(self.head)

    def _u64(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, at)[0])

    def add(self, at: int, words: int) -> int:
        """Move a counter and return what it was."""
        before = self._u64(at)
        struct.pack_into("<Q", self.memory, at, before + words)
        return before

    def put(self, place: int, words: list[int]) -> None:
        """Store words at a place of the array."""
        for i, word in enumerate(words):
            at = self.array + (place + i) % self.size * 4
            struct.pack_into("<I", self.memory, at, word)

    def record(self, *, damage: bool = False, finished: bool = True) -> int:
        """Write a record as the handler does; return its place."""
        self.time += 10
        words = [MUTEX_FREE | WORDS << 16, self.time, 0, os.getpid(), 77, 4096, 0, 0, 0]
        total = 0
        for word in words:
            total = ((total << 1 | total >> 31) + word) & 0xFFFFFFFF
        words.append(total ^ (1 if damage else 0))
        place = self.add(self.reserved, WORDS)
        if not finished:
            words = [UNFINISHED | WORDS << 16, 0, 0, 12345]
        self.put(place, words)
        if finished:
            self.add(self.written, WORDS)
        return place

    def writing(self, pid: int, start: int = 0) -> None:
        """Enter a process that is in the middle of a record."""
        namespace = Path("/proc/self/ns/pid").stat().st_ino
        struct.pack_into("<I", self.memory, PROCESS_HIGH, 1)
        entry = (2, pid, 1, 0xFFFFFFFF, 0, 0, 0, namespace)
        struct.pack_into("<IIIIQQII", self.memory, 384, *entry)
        struct.pack_into("<IIQ", self.memory, self.processes, 1, 0, start)

    def events(self) -> int:
        """Finish, and return how many events are on disk."""
        self.collector.close()
        return int(self.collector.finish().events)


@pytest.fixture
def buffer(tmp_path: Path, native_stage: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Buffer]:
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
    segment, trace = tmp_path / "segment", tmp_path / "trace"
    trace.mkdir()
    collector = SharedCollector(segment, trace, BufferOptions().native(), size=65536)
    with segment.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        yield Buffer(memory, collector, trace)
    collector.destroy()


def test_buffer_size_is_a_power_of_two(buffer: Buffer) -> None:
    assert buffer.size * 4 == 65536


def test_records_that_wrap_are_whole(buffer: Buffer) -> None:
    for _ in range(5000):  # three times round the array; no record length divides the array's size
        buffer.record()
        buffer.collector.drain()
    assert buffer.events() == 5000
    assert fault_lines(buffer.collector) == []


def test_hole_of_known_size_is_skipped(buffer: Buffer) -> None:
    buffer.record()
    place = buffer.record(finished=False)
    buffer.record()
    assert buffer.events() == 2
    assert fault_lines(buffer.collector) == [
        f"shared buffer, word {place}: a record of process 12345 (10 words) is left unfinished"
    ]


def test_hole_of_unknown_size_is_found_by_the_next_record(buffer: Buffer) -> None:
    buffer.record()
    place = buffer.add(buffer.reserved, 23)
    buffer.record()
    assert buffer.events() == 2
    assert fault_lines(buffer.collector) == [
        f"shared buffer, word {place}: a record (23 words) is left unfinished"
    ]


def test_wrong_checksum_is_reported_with_its_place(buffer: Buffer) -> None:
    buffer.record()
    place = buffer.record(damage=True)
    buffer.record()
    assert buffer.events() == 2
    pid = os.getpid()
    what = f"a record of process {pid} (10 words) is damaged: its checksum is wrong"
    assert fault_lines(buffer.collector) == [f"shared buffer, word {place}: {what}"]


def test_dead_writer_is_noticed_at_once(buffer: Buffer) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    began = time.monotonic()
    for _ in range(20):
        buffer.writing(child.pid)
        buffer.record(finished=False)
        buffer.collector.drain(flush=True)
    assert time.monotonic() - began < 35  # living writers get two seconds each


def test_runnable_writer_is_waited_for(buffer: Buffer) -> None:
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    buffer.writing(child.pid, start_time(child.pid) or 0)
    buffer.record(finished=False)
    began = time.monotonic()
    threading.Timer(4, child.kill).start()
    buffer.collector.drain(flush=True)
    assert time.monotonic() - began > 3.9
    child.wait()


def test_sleeping_writer_is_given_two_seconds(buffer: Buffer) -> None:
    child = subprocess.Popen(["sleep", "600"])
    buffer.writing(child.pid, start_time(child.pid) or 0)
    place = buffer.record(finished=False)
    began = time.monotonic()
    stats = buffer.collector.drain(flush=True)
    child.kill()
    child.wait()
    assert 1.9 < time.monotonic() - began < 120
    assert stats.events == 0
    # The buffer is usable again.
    buffer.record()
    assert buffer.events() == 1
    assert f"word {place}:" in fault_lines(buffer.collector)[0]
