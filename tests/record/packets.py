"""Reads stream files with NumPy only: a second opinion on the collector's output."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nptltrace.catalog import EVENTS

if TYPE_CHECKING:
    from pathlib import Path

HEAD = struct.Struct("<I16sIQ6Q4IQIIQQ")
MORE = 1023
STACK = 1021  # timestamp of the previous event
IDS = {(event.name, event.variant): event.id for event in EVENTS}
TAKEN, FREE = IDS["MUTEX_TAKEN", ""], IDS["MUTEX_FREE", ""]
OBJECT = np.uint64((1 << 48) - 1)

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Packet:
    """A packet; each row of `slots` has two words."""

    begin: int
    end: int
    discarded: int
    sequence: int
    pid: int
    tid: int
    events: int
    thread_serial: int
    slots: Words


def packets_of(file: Path) -> list[Packet]:
    """Return the packets of a stream file, which must be whole."""
    data = np.fromfile(file, dtype="<u8")
    packets: list[Packet] = []
    at = 0
    while at < len(data):
        head = HEAD.unpack(data[at : at + 16].tobytes())
        assert head[0] == 0xC1FC1FC1
        words = head[7] // 64
        assert head[6] == head[7]
        slots = data[at + 16 : at + words].reshape(-1, 2)
        assert len(slots) * 2 == words - 16, "cut off"
        packets.append(Packet(head[4], head[5], head[8], head[9], head[10], head[11], head[16],
                            head[17], slots))  # fmt: skip
        at += words
    return packets


def streams(trace: Path) -> list[list[Packet]]:
    """Return the packets of each stream, and check what every stream must hold."""
    by_stream: dict[str, list[Packet]] = {}
    for file in sorted(trace.glob("stream-*")):
        by_stream.setdefault(file.name.partition(".")[0], []).extend(packets_of(file))
    for packets in by_stream.values():
        for before, after in pairwise(packets):
            assert after.sequence == before.sequence + 1
            assert after.begin >= before.end
            assert after.discarded >= before.discarded
        for packet in packets:
            ids = packet.slots[:, 0] & np.uint64(1023)
            begins = (ids != MORE) & (ids != STACK)
            assert int(begins.sum()) == packet.events
            times = packet.slots[begins, 0] >> np.uint64(10) & np.uint64((1 << 40) - 1)
            offsets = (times - np.uint64(packet.begin)) & np.uint64((1 << 40) - 1)
            assert (np.diff(offsets.astype(np.int64)) >= 0).all(), "time goes back"
    return list(by_stream.values())


def pairs_by_mutex(trace: Path) -> list[int]:
    """Return how often each mutex was taken and freed, alternately, by its only thread."""
    pairs: list[int] = []
    # Threads may use a stream one after another.
    threads: dict[tuple[int, int], list[Words]] = {}
    for number, packets in enumerate(streams(trace)):
        for packet in packets:
            threads.setdefault((number, packet.thread_serial), []).append(packet.slots)
    for words in threads.values():
        slots = np.concatenate(words)
        ids = slots[:, 0] & np.uint64(1023)
        for mutex in np.unique(slots[ids == FREE, 1] & OBJECT):
            own = ids[((slots[:, 1] & OBJECT) == mutex) & np.isin(ids, [TAKEN, FREE])]
            assert (own[::2] == TAKEN).all()
            assert (own[1::2] == FREE).all()
            if len(own) > 2:
                pairs.append(len(own) // 2)
    return sorted(pairs)


def session(trace: Path) -> dict[str, Any]:
    """Return info/session.json."""
    facts: dict[str, Any] = json.loads((trace / "info" / "session.json").read_text())
    return facts


def processes(trace: Path) -> list[dict[str, Any]]:
    """Return the process lines of info/processes.jsonl."""
    lines = (trace / "info" / "processes.jsonl").read_text().splitlines()
    parsed = [json.loads(line) for line in lines if line]
    return [line["process"] for line in parsed if "process" in line]


def babeltrace_lost(trace: Path) -> int:
    """Return babeltrace2's count of lost events, and insist that babeltrace2 is sure of it."""
    done = subprocess.run(
        ["babeltrace2", trace],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", check=True,
    )  # fmt: skip
    warnings = re.findall(r"WARNING: Tracer (.*?)discarded (\S+) event", done.stderr)
    assert not any(doubt for doubt, _ in warnings)
    return sum(int(count) for _, count in warnings)


def babeltrace_count(trace: Path) -> int:
    """Return the number of events that babeltrace2 sees; it must print no warning.

    babeltrace2 shows call stacks as events; they are not counted.
    """
    done = subprocess.run(
        ["babeltrace2", trace, "-c", "sink.utils.counter", "-p", "step=+0"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    counts = [line.split()[0] for line in done.stdout.splitlines() if "Event message" in line]
    return int(counts[-1]) - stack_count(trace)


def stack_count(trace: Path) -> int:
    """Return how many events have a call stack."""
    packets = (packet for file in trace.glob("stream-*") for packet in packets_of(file))
    return sum(int((p.slots[:, 0] & np.uint64(1023) == STACK).sum()) for p in packets)
