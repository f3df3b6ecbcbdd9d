"""Writes a black box as an ordinary trace."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding.arrays import put, size_of, struct_of
from nptltrace._binding.headers import ptt_abi as c
from nptltrace._binding.libpttcollect import Collector
from nptltrace._files import trace_directories
from nptltrace.recording.files.host import describe_host
from nptltrace.recording.files.tracedir import Clockwork, TraceDir, completeness
from nptltrace.recording.files.tsdl_writer import Calibration
from nptltrace.recording.processes import ProcessLog
from nptltrace.recording.settings.options import BufferOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace._binding.libpttcollect import Stats
    from nptltrace._files.directories import Directory
    from nptltrace.hang.black_box.memory import Box, Life
    from nptltrace.hang.targets.target import Target

__all__ = ["save"]

_GIGA = 10**9
# Two readings of the clocks give the speed of the clock if they are so far apart.
_APART_NS = 10_000_000
# The clock of another boot gives a different time for the beginning of the box.
_SAME_BOOT_NS = 2 * _GIGA
# A core file may be from another machine, so only the architecture is known.
_UNKNOWN_HOST = {"hostname": "", "kernel": "", "libc": "", "cpus": 0, "boot_id": ""}
_UNKNOWN_SPEED = "the speed of the clock is not in the core file: times are as this machine counts"
# Chunks of a segment, at least.
_CHUNKS = 4


def save(box: Box, process: Target, output: Path, *, force: bool = False) -> Stats:
    """Write a black box as a trace.

    Args:
        box: The black box.
        process: Its process.
        output: The trace directory.
        force: Replace the trace in that directory.

    Returns:
        The counts of the trace.

    Raises:
        PttError: The trace cannot be written.
        UsageError: There is something else in the directory.
    """
    directory, new = trace_directories.make(output, force=force)
    try:
        with _segment(box) as segment:
            stats = _write(box, process, directory, segment)
    except BaseException:
        trace_directories.remove(directory, whole=new)
        raise
    directory.close()
    return stats


def _write(box: Box, process: Target, directory: Directory, segment: Path) -> Stats:
    options = BufferOptions().native()
    collector = Collector(segment, directory.by_descriptor, options, attach=True)
    try:
        collector.close()
        stats = collector.finish()
        uuid = collector.uuid
    finally:
        collector.destroy()
    clock, calibration = _clock(box, process)
    command = _command(process)
    facts: dict[str, Any] = {
        **_host(process),
        "version": 1,
        "uuid": uuid,
        "command": command,
        # The box does not say which events the user chose.
        "level": "",
        "handler": "ring",
        "nptl": "stock",
        "children": False,
        "policy": "loop",
        "stacks": int(box.head.stack_depth),
        "sched": "none",
        "python": "off",
        "start_unix_ns": int(box.head.start_unix_ns),
        "clock": {"name": clock.name, "start": int(box.head.start_clock)},
        # The box keeps the newest events only, and the process goes on.
        "level_changed": True,
        "derived_from": [uuid],
        "black_box": {"of": process.title, "remarks": list(box.remarks)},
        **completeness(stats),
    }
    trace = TraceDir(directory, facts)
    log = ProcessLog(trace.process_log())
    try:
        _log(box, process, log, command, calibration.unix_ns)
    finally:
        log.close()
    trace.write(calibration, stats)
    return stats


def _log(box: Box, process: Target, log: ProcessLog, command: Sequence[str], unix_ns: Any) -> None:
    """Write down the process, its modules, the names of its threads, call sites and stacks."""
    exe = next((m.path for m in process.modules if ".so" not in m.path.rpartition("/")[2]), "")
    log.add(
        "process", 0, pid=process.pid, inner_pid=box.pid, ppid=box.ppid, parent=None,
        start_unix_ns=unix_ns(box.start), start_clock=box.start, exe=exe, cmdline=list(command),
        name=process.name,
    )  # fmt: skip
    modules = [
        {
            "path": module.path, "start": hex(module.start), "end": hex(module.end),
            "offset": module.offset, "bias": hex(module.bias), "build_id": module.build_id,
        }
        for module in process.modules
        if module.bias is not None
    ]  # fmt: skip
    log.add("modules", 0, modules=modules)
    log.add("sites", 0, sites={str(site): hex(address) for site, address in box.sites.items()})
    stacks = [(number, caller, hex(address)) for number, caller, address in box.stacks]
    log.add("stacks", 0, stacks=stacks)
    at = box.looked_at or box.start
    known = {life.tid for life in box.lives if not life.has_ended}
    for thread in process.threads():
        if thread.inner_tid in known and thread.name:
            log.add("thread", 0, pid=process.pid, tid=thread.inner_tid, name=thread.name, clock=at)


def _host(process: Target) -> dict[str, Any]:
    runs = process.start_unix_ns is None
    return describe_host() if runs else {"machine": process.machine, **_UNKNOWN_HOST}


def _command(process: Target) -> list[str]:
    if not process.has_own_time:
        return [process.name]
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return [process.name]
    return [os.fsdecode(word) for word in words]


def _clock(box: Box, process: Target) -> tuple[Clockwork, Calibration]:
    """Return the clock and its speed: by the clocks here, or by two readings in the box."""
    head = box.head
    clock = Clockwork(head.clock)
    here = clock.calibration()
    is_here = abs(here.unix_ns(head.start_clock) - head.start_unix_ns) < _SAME_BOOT_NS
    if process.has_own_time or is_here:
        return clock, here
    elapsed_ns = head.later_monotonic_ns - head.start_monotonic_ns
    ticks = head.later_clock - head.start_clock
    frequency = here.frequency
    if clock.name != "monotonic":
        if head.later_busy or not _APART_NS <= elapsed_ns < 1 << 62 or not 0 < ticks < 1 << 62:
            process.remarks.append(_UNKNOWN_SPEED)
        else:
            frequency = max(1, ticks * _GIGA // elapsed_ns)
    start_ns = head.start_clock * _GIGA // frequency
    return clock, Calibration(frequency, head.start_unix_ns - start_ns, clock.name)


@contextmanager
def _segment(box: Box) -> Iterator[Path]:
    """Yield the path of a file with the events as a segment, as a killed recorder leaves it."""
    data = _composed(box)
    with tempfile.TemporaryDirectory(prefix="ptt-box-") as directory:
        path = Path(directory) / "segment"
        with path.open("xb") as file:
            file.write(data)
        yield path


def _composed(box: Box) -> bytearray:
    """Return a segment with the events, each thread with an entry of its own."""
    chunks = sum(len(life.pieces) for life in box.lives)
    head = struct_of(c.Segment, bytes(box.head))
    size = head.chunk_size
    at = _aligned(size_of(c.Segment), 128)
    head.process_offset, at = at, _aligned(at + size_of(c.Process), 128)
    head.thread_count = min(max(1, len(box.lives)), c.PTT_THREAD_COUNT_MAX)
    head.thread_owner_offset, at = at, _aligned(at + 4 * head.thread_count, 128)
    head.thread_offset, at = at, at + size_of(c.Thread) * head.thread_count
    head.chunk_count = max(_CHUNKS, chunks)
    head.chunk_state_offset, at = at, _aligned(at + 4 * head.chunk_count, 128)
    head.site_offset = at
    head.chunk_offset = _aligned(at + size_of(c.SiteEntry) * c.PTT_SITE_JOURNAL, size)
    head.size = head.chunk_offset + head.chunk_count * size
    head.chunks_there, head.thread_high = head.chunk_count, head.thread_count
    head.box = head.shared_offset = head.chunk_reserve = head.chunk_reserve_at = 0
    head.site_head = head.site_tail = head.collector = head.beat = head.stalled = 0
    head.closed = head.stopped = head.waiters = head.lost_processes = head.unjoined = 0
    head.process_high = head.images = 1
    head.recorder_pid = box.pid
    data = bytearray(head.size)
    put(data, 0, head)
    process = c.Process(
        c.PTT_PROCESS_LIVE, box.pid, box.ppid, 0xFFFF_FFFF, box.start, box.lost_threads, 0, 0
    )
    put(data, head.process_offset, process)
    index = 0
    for number, life in enumerate(box.lives[: head.thread_count]):
        index = _put_life(data, head, number, life, index)
    return data


def _put_life(data: bytearray, head: c.Segment, number: int, life: Life, index: int) -> int:
    """Put the entry and the chunks of a thread into a segment; return the next free chunk."""
    pid = head.recorder_pid
    state = c.PTT_THREAD_ENDED if life.has_ended else c.PTT_THREAD_LIVE
    entry = c.Thread(
        t_base=life.pieces[-1].t_base, state=state, pid=pid, tid=life.tid,
        chunks=len(life.pieces),
    )  # fmt: skip
    put(data, head.thread_offset + size_of(c.Thread) * number, entry)
    _word(data, head.thread_owner_offset + 4 * number, 1)
    for serial, piece in enumerate(life.pieces):
        full = serial % 0x3FFF << 17 | number << 2 | c.PTT_CHUNK_FULL
        _word(data, head.chunk_state_offset + 4 * index, full)
        at = head.chunk_offset + index * head.chunk_size
        chunk = c.Chunk(piece.t_base, pid, life.tid, 0, head.chunk_size, serial)
        put(data, at, chunk)
        slots = np.ascontiguousarray(piece.slots).tobytes()
        at += c.PTT_CHUNK_HEAD
        data[at : at + len(slots)] = slots
        if c.PTT_CHUNK_HEAD + len(slots) < head.chunk_size:
            _word(data, at + len(slots), c.PTT_ID_END)
        index += 1
    return index


def _aligned(value: int, to: int) -> int:
    return -(-value // to) * to


def _word(data: bytearray, at: int, value: int) -> None:
    data[at : at + 4] = value.to_bytes(4, "little")
