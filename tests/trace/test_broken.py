"""Damaged, cut-off, empty and foreign traces: PTT reads whole parts and names the others."""

from __future__ import annotations

import json
import random
import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from nptltrace._binding import libpttread
from nptltrace.api import Traceset
from nptltrace.errors import TraceFormatError, UsageError
from nptltrace.trace.statistics import statistics
from tests.trace.builder import HEAD, crc32c
from tests.trace.conftest import small

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

FIRST, SECOND = 9, 2  # events of the packets of stream 0


def reseal(data: bytearray, at: int = 0) -> None:
    """Correct the checksum of a changed packet."""
    size = struct.unpack_from("<Q", data, at + 56)[0] // 8
    struct.pack_into("<I", data, at + 92, 0)
    struct.pack_into("<I", data, at + 92, crc32c(bytes(data[at : at + size])))


def edit(trace: Path, name: str = "stream-00000") -> bytearray:
    return bytearray((trace / name).read_bytes())


def events(trace: Path) -> int:
    """Return the number of events; the merge and the count must agree."""
    merged = int(Traceset(trace).events().num_rows)
    assert statistics(Traceset(trace)).events == merged
    return merged


def reasons(trace: Path) -> list[str]:
    source = Traceset(trace)
    source.reader.verify()
    return [damage.reason for damage in source.damages()]


def test_a_whole_trace_has_no_damage(small_trace: Path) -> None:
    assert events(small_trace) == FIRST + SECOND + 6
    assert reasons(small_trace) == []


def test_a_flipped_bit_costs_its_packet(small_trace: Path) -> None:
    data = edit(small_trace)
    data[HEAD.size + 40] ^= 1
    (small_trace / "stream-00000").write_bytes(data)
    assert events(small_trace) == SECOND + 6
    source = Traceset(small_trace)
    source.reader.verify()
    (damage,) = source.damages()
    assert (damage.path, damage.offset) == (str(small_trace / "stream-00000"), 0)
    assert "checksum" in damage.reason
    assert damage.size == struct.unpack_from("<Q", data, 56)[0] // 8


@pytest.mark.parametrize("left", [1, 60, 127, 128, 300])
def test_a_file_that_was_cut_off_keeps_its_whole_packets(small_trace: Path, left: int) -> None:
    data = edit(small_trace)
    first = struct.unpack_from("<Q", data, 56)[0] // 8
    (small_trace / "stream-00000").write_bytes(data[: first + min(left, len(data) - first - 1)])
    assert events(small_trace) == FIRST + 6
    assert len(reasons(small_trace)) == 1


def test_an_unfinished_packet_of_a_live_recording_is_no_damage(small_trace: Path) -> None:
    data = edit(small_trace)
    (small_trace / "stream-00000").write_bytes(data[:-1])
    (small_trace / "info" / "session.json").write_text('{"state": "running"}')
    ts = Traceset(small_trace)
    assert ts.events().num_rows == FIRST + 6
    assert ts.damages() == []
    ts.middle_time()
    (small_trace / "stream-00000").write_bytes(data)
    ts.refresh()
    assert ts.middle_time()["event"].to_pylist() == ["MUTEX_TAKEN", "COND_SIGNAL_OUT"]


def test_garbage_between_packets_is_skipped(small_trace: Path) -> None:
    data = edit(small_trace)
    first = struct.unpack_from("<Q", data, 56)[0] // 8
    (small_trace / "stream-00000").write_bytes(data[:first] + b"\xc1\x1f" * 20 + data[first:])
    assert events(small_trace) == FIRST + SECOND + 6
    assert len(reasons(small_trace)) == 1


def test_a_wrong_size_does_not_hide_the_next_packet(small_trace: Path) -> None:
    data = edit(small_trace)
    size = struct.unpack_from("<Q", data, 56)[0]
    struct.pack_into("<QQ", data, 48, size + 128 * 8, size + 128 * 8)
    (small_trace / "stream-00000").write_bytes(data)
    assert events(small_trace) == SECOND + 6


def test_packets_of_another_trace_are_refused(small_trace: Path) -> None:
    data = edit(small_trace)
    data[4] ^= 0xFF
    reseal(data)
    (small_trace / "stream-00000").write_bytes(data)
    assert events(small_trace) == SECOND + 6
    assert any("another trace" in reason for reason in reasons(small_trace))


def test_a_broken_record_costs_only_itself(tmp_path: Path) -> None:
    trace = small(tmp_path / "r.ptt").write_records()
    whole = events(trace)
    data = edit(trace, "stream-records")
    data[HEAD.size + 24] ^= 1
    reseal(data)
    (trace / "stream-records").write_bytes(data)
    assert events(trace) == whole - 1
    source = Traceset(trace)
    (damage,) = source.damages()
    assert damage.offset == HEAD.size
    assert "checksum of this record" in damage.reason


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"not a packet at all" * 50])
def test_files_without_packets_have_no_event(small_trace: Path, content: bytes) -> None:
    for name in ("stream-00000", "stream-00001"):
        (small_trace / name).write_bytes(content)
    assert events(small_trace) == 0
    assert Traceset(small_trace).middle_time().num_rows == 0


def test_a_trace_without_info_is_read(small_trace: Path) -> None:
    shutil.rmtree(small_trace / "info")
    assert events(small_trace) == FIRST + SECOND + 6
    assert any("info/session.json" in remark for remark in Traceset(small_trace).remarks())


def test_damaged_info_lines_are_skipped(small_trace: Path) -> None:
    path = small_trace / "info" / "processes.jsonl"
    bad = '{"process": {"index": []}}\nnonsense\n[1]\n{"sites": {"process": 0, "sites": 5}}\n'
    path.write_text(bad + path.read_text() + '{"thread": {"proc')
    source = Traceset(small_trace)
    assert source.processes[0].exe == "/bin/x"
    assert len(source.remarks()) >= 1


def test_impossible_numbers_in_info_are_skipped(ptt: Ptt, small_trace: Path) -> None:
    path = small_trace / "info" / "processes.jsonl"
    bad = [
        {"stacks": {"process": 0, "stacks": [[2**63, 1, "0x1"]]}},
        {"stacks": {"process": 0, "stacks": [[2**31, 1, "0x1"]]}},
        {"sites": {"process": 0, "sites": {str(2**40): "0x1"}}},
        {"process": {"index": 2**40, "pid": 1}},
        {"process": {"index": 7, "pid": 2**48}},
        {"process": {"index": 8, "pid": -1}},
        {"process": {"index": 9, "pid": 9, "start_unix_ns": 2**80}},
        {"thread": {"process": 0, "tid": -(2**70), "name": "x"}},
        {"exit": {"process": 0, "end_unix_ns": -(2**63)}},
    ]
    path.write_text("\n".join(map(json.dumps, bad)) + "\n" + path.read_text())
    assert Traceset(small_trace).processes[0].exe == "/bin/x"
    assert events(small_trace) == FIRST + SECOND + 6
    ptt("check", small_trace)
    ptt("sql", small_trace, "select count(*) from processes")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("\x57\x1d\xd1\x75", "another tracer"),
        ("hello", "not CTF"),
        ("/* CTF 1.8 */ event { };", "another tracer"),
        ('/* CTF 1.8 */\n"MUTEX_TAKEN"', "no uuid"),
    ],
)
def test_foreign_metadata_is_an_error(small_trace: Path, text: str, reason: str) -> None:
    (small_trace / "metadata").write_bytes(text.encode("latin-1"))
    with pytest.raises(TraceFormatError, match=reason):
        Traceset(small_trace)


def test_a_directory_without_a_trace_is_an_error(tmp_path: Path, ptt: Ptt) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        result = ptt("view", path, status=2)
        assert result.stderr.startswith("ptt: error: ")
        assert result.stderr.count("\n") == 1


def test_the_same_trace_twice_is_an_error(small_trace: Path) -> None:
    with pytest.raises(UsageError, match="the same trace"):
        Traceset(small_trace, small_trace)


def _exercise(trace: Path) -> None:
    """Call every function that reads bytes of the trace."""
    from nptltrace._binding.libpttread_text import CSV, JSONL, RAW, TEXT, Names

    source = Traceset(trace)
    source.names.learn()
    names, cursor, buffer = (
        Names(source.reader),
        libpttread.Cursor(source.reader),
        libpttread.Buffer(64),
    )
    while cursor.read(buffer):
        names.missing(buffer)
        for style in (TEXT, RAW, JSONL, CSV):
            for piece in names.text(buffer, style):
                assert len(piece)
        place = cursor.place()
        other = libpttread.Cursor(source.reader)
        other.seek(place)
        other.seek_key(place.key)
    counts, _, _ = libpttread.count(source.reader, workers=2, objects=True)
    assert sum(count.events for count in counts) >= 0
    for stream in range(source.reader.stream_count()):
        what = libpttread.Copy(to_packet=libpttread.ANY)
        what.thread_filter = libpttread.ANY
        what.tick_mul = what.tick_div = 1
        with (trace / ".copy").open("wb") as file:
            source.reader.copy_stream(stream, what, file.fileno())
    source.damages()


@pytest.mark.parametrize("records", [False, True])
def test_random_bytes_never_crash(tmp_path: Path, *, records: bool) -> None:
    made = small(tmp_path / "f.ptt")
    trace = made.write_records() if records else made.write()
    name = "stream-records" if records else "stream-00000"
    whole = (trace / name).read_bytes()
    rng = random.Random(1)  # noqa: S311 -- repeatable
    for round_ in range(150):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 8)):
            at = rng.choice([rng.randrange(len(data)), rng.randrange(128)])
            data[at] = rng.choice([0, 0xFF, 0x80, rng.randrange(256), data[at] ^ 1])
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        # With a correct checksum, the reader does not reject the packet at once.
        size = struct.unpack_from("<Q", data, 56)[0] // 8 if len(data) >= HEAD.size else 0
        if round_ % 2 and HEAD.size <= size <= len(data):
            reseal(data)
        (trace / name).write_bytes(data)
        _exercise(trace)


def test_missing_files_are_reported(ptt: Ptt, small_trace: Path) -> None:
    session = small_trace / "info" / "session.json"
    facts = json.loads(session.read_text()) | {"state": "complete", "events": FIRST + SECOND + 6}
    session.write_text(json.dumps(facts))
    assert ptt("check", small_trace, status=None).stderr == ""
    (small_trace / "stream-00001").unlink()
    remark = "6 events that were recorded are not in it: files are missing or empty"
    assert remark in ptt("check", small_trace, status=None).stderr
    assert "files are missing or empty" in ptt("verify", small_trace, status=None).stdout
