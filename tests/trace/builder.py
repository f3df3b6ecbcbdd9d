"""Writes synthetic traces: valid packets, metadata and info files, without a tracer."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from nptltrace.catalog import BY_ID, EVENTS
from nptltrace.recording.files.tsdl_writer import Calibration, metadata_text

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.catalog import EventType

HEAD = struct.Struct("<I16sIQ QQQQQQ IIII QIIQQ")
MAGIC = 0xC1FC1FC1
CLOCK = UUID("87654321-1234-5678-1234-567812345678")
BOOT = 1_700_000_000 * 10**9


def _crc_table() -> list[int]:
    table = []
    for i in range(256):
        value = i
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes: slow, and independent of the native function."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def event_id(name: str, variant: str = "") -> int:
    """Return the id of an event by name and variant."""
    return next(e.id for e in EVENTS if e.name == name and e.variant == variant)


_FORMATS = {"u8": "<B", "u16": "<H", "u32": "<I", "tid": "<I", "s32": "<i", "u64": "<Q"}
_FORMATS |= {"s64": "<q", "ns": "<Q"}


@dataclass
class Event:
    """One event to write."""

    ticks: int
    name: str
    object: int = 0
    site: int = 0
    cpu: int = 0x3FFF
    variant: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> EventType:
        return BY_ID[event_id(self.name, self.variant)]

    def slots(self) -> bytes:
        """Return the event as slots."""
        kind, data = self.type, b""
        values = dict(self.fields)
        if kind.fields and kind.fields[-1].type == "bytes":
            data = values.pop(kind.fields[-1].name, b"")
            values[kind.fields[-2].name] = -(-len(data) // 14)
            if any(f.name == "size" for f in kind.fields):
                values["size"] = len(data)
        pieces = -(-len(data) // 14)
        body = bytearray(16 * kind.slots)
        for f in kind.fields:
            value, at = values.get(f.name, 0), f.offset - 16
            if f.type == "ptr":
                body[at : at + 6] = int(value).to_bytes(6, "little")
            elif f.type != "bytes":
                struct.pack_into(_FORMATS[f.type], body, at, value)
        for number in range(pieces):
            body += b"\0\0" + data[14 * number : 14 * number + 14].ljust(14, b"\0")
        total = len(body) // 16
        for number in range(total):
            left = min(total - 1 - number, 63)
            struct.pack_into("<H", body, 16 * number, 1023 | left << 10)
        w0 = kind.id | (self.ticks & (1 << 40) - 1) << 10 | self.cpu << 50
        w1 = self.object | self.site << 48
        return struct.pack("<QQ", w0, w1) + bytes(body)

    def record(self, pid: int, tid: int, site: int) -> bytes:
        """Return the event as a classic record."""
        words = [self.ticks & 0xFFFFFFFF, self.ticks >> 32, pid, tid]
        words += [self.object & 0xFFFFFFFF, self.object >> 32, site & 0xFFFFFFFF, site >> 32]
        data = b"".join(struct.pack("<I", w) for w in words)
        for f in self.type.fields:
            value = self.fields.get(f.name, b"" if f.type == "bytes" else 0)
            if f.type == "bytes":
                data += struct.pack("<I", len(value)) + value + b"\0" * (-len(value) % 4)
            elif f.type in {"u64", "s64", "ns", "ptr"}:
                data += struct.pack("<q" if f.type == "s64" else "<Q", value)
            elif not f.name.endswith("_pieces"):
                if f.name == "size":
                    value = len(self.fields.get("data", b""))
                data += struct.pack("<i" if f.type == "s32" else "<I", value)
        count = len(data) // 4 + 2
        data = struct.pack("<I", self.type.id | count << 16) + data
        total = 0
        for (word,) in struct.iter_unpack("<I", data):
            total = ((total << 1 | total >> 31) & 0xFFFFFFFF) + word & 0xFFFFFFFF
        return data + struct.pack("<I", total)


def packet(
    uuid: bytes, content: bytes, *, begin: int, end: int, pid: int, tid: int, events: int,
    process: int = 0, stream: int = 0, instance: int = 0, sequence: int = 0, discarded: int = 0,
) -> bytes:  # fmt: skip
    """Return a packet with the right checksum."""
    used = (HEAD.size + len(content)) * 8
    content += b"\0" * (-len(content) % 16)
    size = (HEAD.size + len(content)) * 8
    head = [
        MAGIC, uuid, stream, instance, begin, end, used, size, discarded, sequence,
        pid, tid, process, 0, 0, 0, events, 0, 0,
    ]  # fmt: skip
    head[13] = crc32c(HEAD.pack(*head) + content)
    return HEAD.pack(*head) + content


@dataclass
class Thread:
    """A thread with its packets, each a list of events."""

    tid: int
    pid: int = 100
    process: int = 0
    packets: list[list[Event]] = field(default_factory=list)
    discarded: int = 0


@dataclass
class Builder:
    """A trace under construction: add threads, then write."""

    path: Path
    threads: list[Thread] = field(default_factory=list)
    frequency: int = 10**9
    uuid: UUID = field(default_factory=lambda: UUID("12345678-1234-5678-1234-567812345678"))
    processes: list[dict[str, Any]] = field(default_factory=list)
    session: dict[str, Any] = field(default_factory=lambda: {"state": "complete", "level": "2"})
    boot_id: str = "b"

    def thread(self, tid: int, *packets: list[Event], pid: int = 100, process: int = 0) -> Thread:
        """Add a thread."""
        made = Thread(tid, pid, process, list(packets))
        self.threads.append(made)
        return made

    def metadata(self, stream_class: int = 0) -> str:
        calibration = Calibration(self.frequency, BOOT, "tsc")
        env = {"hostname": "test", "boot_id": self.boot_id, "clock": "tsc"}
        return metadata_text(
            uuid=str(self.uuid),
            clock_uuid=str(CLOCK),
            calibration=calibration,
            env=env,
            stream_class=stream_class,
        )

    def write(self) -> Path:
        """Write the trace and return its directory."""
        self.path.mkdir(parents=True, exist_ok=True)
        replace(self.path / "metadata", self.metadata().encode())
        for number, thread in enumerate(self.threads):
            data = b""
            for sequence, events in enumerate(thread.packets):
                content = b"".join(event.slots() for event in events)
                data += packet(
                    self.uuid.bytes, content, begin=events[0].ticks, end=events[-1].ticks,
                    pid=thread.pid, tid=thread.tid, process=thread.process, events=len(events),
                    instance=number, sequence=sequence, discarded=thread.discarded,
                )  # fmt: skip
            replace(self.path / f"stream-{number:05}", data)
        self.write_info()
        return self.path

    def write_records(self) -> Path:
        """Write all events as classic records in one stream; each site is an address."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "metadata").write_text(self.metadata(1))
        rows = [(e, t) for t in self.threads for events in t.packets for e in events]
        rows.sort(key=lambda row: row[0].ticks)
        content = b"".join(e.record(t.pid, t.tid, e.site) for e, t in rows)
        data = packet(
            self.uuid.bytes, content, begin=rows[0][0].ticks, end=rows[-1][0].ticks,
            pid=0, tid=0, events=len(rows), stream=1,
        )  # fmt: skip
        (self.path / "stream-records").write_bytes(data)
        self.write_info()
        return self.path

    def write_info(self) -> None:
        """Write session.json and processes.jsonl."""
        info = self.path / "info"
        info.mkdir(exist_ok=True)
        replace(info / "session.json", json.dumps(self.session).encode())
        lines = [json.dumps(line) + "\n" for line in self.processes]
        replace(info / "processes.jsonl", "".join(lines).encode())


def replace(path: Path, data: bytes) -> None:
    """Replace a file at once: a reader sees either the old file or the new file."""
    new = path.with_name(f".{path.name}")
    new.write_bytes(data)
    new.replace(path)


def rewrite_uuid(path: Path, uuid: UUID) -> None:
    """Give a written trace another identity."""
    text = (path / "metadata").read_text()
    old = next(line for line in text.splitlines() if "uuid =" in line).split('"')[1]
    (path / "metadata").write_text(text.replace(f'uuid = "{old}"', f'uuid = "{uuid}"', 1))
    for file in path.glob("stream-*"):
        data, out = file.read_bytes(), b""
        while data:
            head = list(HEAD.unpack_from(data))
            size = head[7] // 8
            head[1], head[13] = uuid.bytes, 0
            content = data[HEAD.size : size]
            head[13] = crc32c(HEAD.pack(*head) + content)
            out += HEAD.pack(*head) + content
            data = data[size:]
        file.write_bytes(out)
