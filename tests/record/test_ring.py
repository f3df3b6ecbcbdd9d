"""The collector alone, against a writer that has only the ring."""

from __future__ import annotations

import random
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from nptltrace._binding.libpttcollect import Collector, CollectorError, read_clock
from nptltrace.recording.files.tsdl_writer import Calibration, metadata_text
from nptltrace.recording.settings.options import BufferOptions
from tests.record.packets import babeltrace_count, streams

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace._binding.libpttcollect import Stats


@pytest.fixture(autouse=True)
def _native(native_stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))


def collect(
    writer: Path,
    tmp_path: Path,
    *args: int,
    budget: int = 64 << 20,
    chunk_size: int = 16384,
    flushes: float = 0.2,
) -> tuple[int, Stats, Path]:
    """Run the writer, drain it, and return its output, the statistics and the trace.

    A share `flushes` of the drains also takes buffers that are not full.
    """
    trace = tmp_path / "trace"
    trace.mkdir()
    options = BufferOptions(budget=budget, chunk_size=chunk_size)
    collector = Collector(tmp_path / "segment", trace, options.native())
    command = [str(writer), str(tmp_path), *map(str, args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            collector.drain(flush=random.random() < flushes)  # noqa: S311
            collector.wait(0.002)
        assert process.stdout is not None
        message = int(process.stdout.read())
    for place, _ in collector.processes():
        collector.process_gone(place)
    collector.close()
    stats = collector.finish()
    now = read_clock(collector.clock)
    calibration = Calibration(10**9, now.unix_ns - now.clock, "tsc")
    uuid = collector.uuid
    text = metadata_text(uuid=uuid, clock_uuid=uuid, calibration=calibration, env={"x": 'a"\\\n'})
    (trace / "metadata").write_text(text)
    collector.destroy()
    return message, stats, trace


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((1, 1000), {}),
        ((8, 100_000), {}),
        ((4, 50_000), {"budget": 256 << 10}),
        ((4, 20_000), {"budget": 64 << 10, "chunk_size": 8192}),
        ((2, 100_000, 1, 1), {}),
        ((2, 50_000, 1, 1), {"budget": 128 << 10, "chunk_size": 8192}),
        ((20, 50, 20), {}),
        ((100, 200), {"budget": 512 << 10}),
    ],
    ids=str,
)
def test_counts_exactly(
    ring_writer: Path, tmp_path: Path, args: tuple[int, ...], options: dict[str, int]
) -> None:
    message, stats, trace = collect(ring_writer, tmp_path, *args, **options)
    found = [packet for packets in streams(trace) for packet in packets]
    assert stats.lost == 0
    assert sum(packet.events for packet in found) == stats.events
    assert stats.bytes == sum(file.stat().st_size for file in trace.glob("stream-*"))
    # A writer that waited adds an event about the wait.
    waits = sum(int((packet.slots[:, 0] & 1023 == 13 << 6).sum()) for packet in found)
    assert stats.events == message + waits
    assert babeltrace_count(trace) == stats.events


@pytest.mark.parametrize("too_many", [0, 100])
def test_real_time_threads_have_room_where_others_wait(
    ring_real_time: Path, tmp_path: Path, too_many: int
) -> None:
    (tmp_path / "trace").mkdir()
    options = BufferOptions(budget=1 << 20)
    collector = Collector(tmp_path / "segment", tmp_path / "trace", options.native())
    per_buffer = (options.chunk_size - 32) // 16
    buffers = options.budget // options.chunk_size
    reserve = buffers // 8
    real_time = reserve * per_buffer + too_many
    command = [str(ring_real_time), str(tmp_path), str(real_time)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        message = process.stdout.readline()  # the collector drains nothing before
        while process.poll() is None:
            collector.drain(flush=True)
            collector.wait(0.002)
    if process.returncode == 77:
        collector.destroy()
        pytest.skip("real-time policies need a right that is missing here")
    assert message == "recorded\n"
    collector.process_gone(0)
    collector.close()
    stats = collector.finish()
    collector.destroy()
    assert (stats.lost_full, stats.lost_real_time) == (too_many, too_many)
    waits = 1  # of the ordinary thread
    assert stats.events == (buffers - reserve) * per_buffer + 1 + waits + reserve * per_buffer


def test_a_killed_thread_no_longer_counts_as_waiting(ring_real_time: Path, tmp_path: Path) -> None:
    """Otherwise the recorder would take the buffers of idle threads forever."""

    def waiters() -> int:
        words = (tmp_path / "segment").read_bytes()[256:264]  # segment.space, segment.waiters
        return int.from_bytes(words[4:], "little")

    (tmp_path / "trace").mkdir()
    collector = Collector(
        tmp_path / "segment", tmp_path / "trace", BufferOptions(budget=1 << 20).native()
    )
    command = [str(ring_real_time), str(tmp_path), "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        message = process.stdout.readline()
        if message:
            assert waiters() == 1
        process.kill()
    if not message:
        collector.destroy()
        pytest.skip("real-time policies need a right that is missing here")
    collector.process_gone(0)
    for _ in range(3):
        collector.drain(flush=True)
    assert waiters() == 0
    collector.destroy()


def test_packets_cost_next_to_nothing(ring_writer: Path, tmp_path: Path) -> None:
    _, stats, _ = collect(ring_writer, tmp_path, 2, 2_000_000, flushes=0)
    assert stats.packets * 128 / stats.bytes < 0.002


def test_threads_share_streams_one_after_the_other(ring_writer: Path, tmp_path: Path) -> None:
    _, stats, trace = collect(ring_writer, tmp_path, 5, 20, 40)
    assert stats.threads == 200
    serials = [[packet.thread_serial for packet in packets] for packets in streams(trace)]
    assert all(numbers == sorted(numbers) for numbers in serials)


def test_a_segment_has_one_collector(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    collector = Collector(tmp_path / "segment", trace, BufferOptions(budget=1 << 20).native())
    with pytest.raises(CollectorError, match="still at work") as refused:
        Collector(tmp_path / "segment", trace, BufferOptions().native(), attach=True)
    assert Collector.is_busy(refused.value)
    collector.destroy()


@pytest.mark.parametrize("data", [b"", b"x" * 100, b"x" * 100_000, b"PTTSEGM1" + bytes(100_000)])
def test_other_files_are_refused_as_segments(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "segment").write_bytes(data)
    with pytest.raises(CollectorError, match="not a segment"):
        Collector(tmp_path / "segment", tmp_path, BufferOptions().native(), attach=True)


@pytest.mark.parametrize(
    "options",
    [BufferOptions(chunk_size=5000), BufferOptions(budget=1), BufferOptions(chunk_size=4096)],
)
def test_senseless_sizes_are_refused(tmp_path: Path, options: BufferOptions) -> None:
    with pytest.raises(CollectorError):
        Collector(tmp_path / "segment", tmp_path, options.native())
    assert list(tmp_path.iterdir()) == []


def test_clocks_agree() -> None:
    for _ in range(20):
        first = read_clock()
        time.sleep(0.05)
        second = read_clock()
        elapsed = second.monotonic_ns - first.monotonic_ns
        # Each reading says how far apart its clocks may have been. The kernel may slew the time of
        # day. A step of the clock meanwhile is rare.
        error = first.spread_ns + second.spread_ns + elapsed // 1000
        assert second.clock > first.clock
        if abs(second.unix_ns - first.unix_ns - elapsed) <= error:
            return
    pytest.fail("the time of day and the monotonic clock disagree")
