"""Order, time and positions agree with a plain sort, for arbitrary traces."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nptltrace.api import Traceset
from nptltrace.errors import UsageError
from nptltrace.trace.reading.cursor import Position
from tests.trace.builder import Builder, Event, rewrite_uuid

if TYPE_CHECKING:
    from tests.support import Ptt

FREQUENCIES = [10**9, 2_999_999_123, 24_000_000, 3 * 10**9]
T0 = 10**12

Streams = list[list[list[tuple[int, bool]]]]

# Streams of packets; an event is (gap to the event before, whether it has continuation slots).
streams = st.lists(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=5,
)
Expected = list[tuple[int, int, int]]


def build(path: Path, spec: Streams, frequency: int) -> Expected:
    """Write a trace; return (ts, tid, object) of its events in the expected order."""
    made = Builder(path, frequency=frequency)
    rows: list[tuple[int, int, int]] = []
    number = 0
    for stream, packets in enumerate(spec):
        ticks, written = T0, []
        for packet in packets:
            events = []
            for gap, long in packet:
                ticks += gap
                number += 1
                name = "COND_WAIT_OUT" if long else "MUTEX_TAKEN"
                events.append(Event(ticks, name, number))
                rows.append((ticks, stream, number))
            written.append(events)
        made.thread(1000 + stream, *written)
    made.write()
    begin = min(row[0] for row in rows)
    rows.sort(key=lambda row: row[:2])  # a stable sort: the order inside a stream stays
    return [((t - begin) * 10**9 // frequency, 1000 + s, n) for t, s, n in rows]


def rows_of(table: object) -> Expected:
    data = table.select(["ts_ns", "tid", "object"]).to_pydict()  # type: ignore[attr-defined]
    return list(zip(data["ts_ns"], data["tid"], data["object"], strict=True))


class Traces:
    """A directory that is removed after the example."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp())
        return self.path / "run.ptt"

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)


@settings(max_examples=60, deadline=None)
@given(spec=streams, frequency=st.sampled_from(FREQUENCIES))
def test_the_merge_is_a_stable_sort(spec: Streams, frequency: int) -> None:
    with Traces() as path:
        expected = build(path, spec, frequency)
        ts = Traceset(path)
        assert rows_of(ts.events()) == expected
        assert rows_of(ts.middle_time()) == expected


@settings(max_examples=60, deadline=None)
@given(spec=streams, frequency=st.sampled_from(FREQUENCIES), data=st.data())
def test_a_read_by_time_includes_all_events_of_its_last_time(
    spec: Streams, frequency: int, data: st.DataObject
) -> None:
    with Traces() as path:
        expected = build(path, spec, frequency)
        last = expected[-1][0]
        start = data.draw(st.integers(-1, last + 2))
        end = data.draw(st.integers(start, last + 3))
        most = data.draw(st.integers(1, 10))
        ts = Traceset(path)
        ts.seek_time(start)
        inside = [row for row in expected if start <= row[0] < end]
        got = rows_of(ts.middle_time(end, most))
        stop = inside[:most][-1][0] if inside else None
        assert got == [row for row in inside if stop is not None and row[0] <= stop]
        # The next read gives the other events, and no event twice.
        assert rows_of(ts.middle_time(end)) == inside[len(got) :]


@settings(max_examples=60, deadline=None)
@given(spec=streams, frequency=st.sampled_from(FREQUENCIES), data=st.data())
def test_a_position_names_exactly_one_event(
    spec: Streams, frequency: int, data: st.DataObject
) -> None:
    with Traces() as path:
        expected = build(path, spec, frequency)
        ts = Traceset(path)
        positions = []
        for row in expected:
            positions.append(ts.position_save())
            assert rows_of(ts.middle_position(None, 1)) == [row]
        positions.append(ts.position_save())
        assert positions == sorted(positions)
        assert len(set(positions)) == len(positions)
        a = data.draw(st.integers(0, len(expected)))
        b = data.draw(st.integers(a, len(expected)))
        again = Traceset(path)
        again.seek_position(Position.parse(str(positions[a])))
        assert rows_of(again.middle_position(positions[b])) == expected[a:b]
        assert again.position_save() == positions[b]
        again.seek_position(positions[a])
        assert rows_of(again.middle_position(positions[b], 3)) == expected[a : min(b, a + 3)]


@settings(max_examples=30, deadline=None)
@given(spec=streams, other=streams)
def test_traces_of_one_clock_are_one_trace(spec: Streams, other: Streams) -> None:
    with Traces() as path:
        build(path / "a", spec, FREQUENCIES[1])
        build(path / "b", other, FREQUENCIES[1])
        rewrite_uuid(path / "b", UUID(int=7))
        ticks = []
        for trace, packets_of in enumerate((spec, other)):
            number = 0
            for stream, packets in enumerate(packets_of):
                at = T0
                for gap, _ in (event for packet in packets for event in packet):
                    at, number = at + gap, number + 1
                    ticks.append((at, trace, stream, number))
        ticks.sort(key=lambda row: row[:3])
        begin = ticks[0][0]
        expected = [((t - begin) * 10**9 // FREQUENCIES[1], 1000 + s, n) for t, _, s, n in ticks]
        assert rows_of(Traceset(path / "a", path / "b").events()) == expected


@settings(max_examples=25, deadline=None)
@given(specs=st.lists(streams, min_size=2, max_size=3), data=st.data())
def test_positions_hold_over_several_traces(specs: list[Streams], data: st.DataObject) -> None:
    """A saved, printed and parsed position leads to the same event, also in a new traceset."""
    with Traces() as path:
        paths = [path / str(number) for number in range(len(specs))]
        for number, (place, spec) in enumerate(zip(paths, specs, strict=True)):
            build(place, spec, FREQUENCIES[1])
            rewrite_uuid(place, UUID(int=number + 1))
        ts = Traceset(*paths)
        expected = rows_of(ts.events())
        positions = []
        for row in expected:
            positions.append(str(ts.position_save()))
            assert rows_of(ts.middle_position(None, 1)) == [row]
        end = ts.position_save()
        positions.append(str(end))
        assert ts.middle_position(None, 1).num_rows == 0
        assert ts.position_save() == end
        parsed = [Position.parse(text) for text in positions]
        assert parsed == sorted(parsed)
        again = Traceset(*paths)
        a = data.draw(st.integers(0, len(expected)))
        b = data.draw(st.integers(0, len(expected)))
        most = data.draw(st.none() | st.integers(0, 5))
        again.seek_position(parsed[a])
        assert again.position_save() == parsed[a]
        # No event lies before an end that is not ahead.
        stop = max(a, b) if most is None else min(max(a, b), a + most)
        assert rows_of(again.middle_position(parsed[b], most)) == expected[a:stop]
        assert again.position_save() == parsed[stop]


@settings(max_examples=25, deadline=None)
@given(spec=streams, data=st.data())
def test_reads_by_time_and_by_position_can_be_mixed(spec: Streams, data: st.DataObject) -> None:
    with Traces() as path:
        expected = build(path, spec, FREQUENCIES[1])
        ts = Traceset(path)
        at = 0
        for _ in range(data.draw(st.integers(1, 6))):
            kind = data.draw(st.sampled_from(["time", "position", "seek", "save"]))
            if kind == "seek":
                time = data.draw(st.integers(-1, expected[-1][0] + 1))
                ts.seek_time(time)
                at = sum(row[0] < time for row in expected)
            elif kind == "save":
                ts.seek_position(ts.position_save())
            elif kind == "time":
                most = data.draw(st.integers(1, 4))
                last = expected[min(at + most, len(expected)) - 1][0]
                stop = sum(row[0] <= last for row in expected)
                assert rows_of(ts.middle_time(None, most)) == expected[at : max(stop, at)]
                at = max(stop, at)
            else:
                most = data.draw(st.integers(0, 4))
                assert rows_of(ts.middle_position(None, most)) == expected[at : at + most]
                at = min(at + most, len(expected))


@settings(max_examples=25, deadline=None)
@given(spec=streams, data=st.data())
def test_positions_stay_while_a_trace_grows(spec: Streams, data: st.DataObject) -> None:
    """Later packets follow behind, and a reader at the end reads on there."""
    with Traces() as path:
        whole = build(path, spec, FREQUENCIES[1])
        (path / "info" / "session.json").write_text('{"state": "running"}')
        full = Traceset(path)
        files = {file: file.read_bytes() for file in sorted(path.glob("stream-*"))}
        for file, content in files.items():
            # The first packets, and maybe half of the next packet.
            file.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        ts = Traceset(path)
        early = rows_of(ts.events())
        read = data.draw(st.integers(0, len(early)))
        # Times count from the first event: the traces must agree on it.
        if not early or early[0] != whole[0]:
            return
        assert rows_of(ts.middle_position(None, read)) == early[:read]
        here = ts.position_save()
        for file, content in files.items():
            file.write_bytes(content)
        ts.refresh()
        after = rows_of(ts.middle_position())
        # Late events are delivered late, and no event twice.
        assert after == [row for row in whole if row not in early[:read]]
        if read < len(early):
            assert here.stream != 2**32 - 1
            ts.seek_position(here)
            assert rows_of(ts.middle_position(None, 1)) == [early[read]]
            full.seek_position(Position.parse(str(here)))
            assert rows_of(full.middle_position(None, 1)) == [early[read]]


def test_a_position_is_valid_in_another_process(small_trace: Path, ptt: Ptt) -> None:
    ts = Traceset(small_trace)
    ts.middle_position(None, 7)
    program = (
        "import sys, nptltrace; from nptltrace.trace.reading.cursor import Position\n"
        "ts = nptltrace.open(sys.argv[1]); ts.seek_position(Position.parse(sys.argv[2]))\n"
        "print(ts.middle_position(None, 2)['object'].to_pylist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, small_trace, str(ts.position_save())],
        env=ptt.environment(), capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert done.stdout == f"{ts.middle_position(None, 2)['object'].to_pylist()}\n"


def test_foreign_positions_are_refused(small_trace: Path, tmp_path: Path) -> None:
    ts = Traceset(small_trace)
    place = ts.position_save()
    other = Position(place.key, place.stream, place.packet, place.offset, "0" * 12)
    with pytest.raises(UsageError, match="other traces"):
        ts.seek_position(other)
    wrong = Position(place.key, place.stream, place.packet, place.offset + 16, place.traceset)
    with pytest.raises(UsageError, match="names no event"):
        ts.seek_position(wrong)
    for text in ("", "1:x", "2:0:0:0:0:0", "1:0:g:0:0:0", "1:0:-1:0:0:0"):
        with pytest.raises(UsageError, match="not a position"):
            Position.parse(text)


def test_a_refused_position_does_not_move_the_reader(small_trace: Path) -> None:
    ts = Traceset(small_trace)
    ts.middle_position(None, 4)
    place = ts.position_save()
    with pytest.raises(UsageError):
        ts.seek_position(Position(place.key, 9, 9, 999, place.traceset))
    assert ts.position_save() == place


def test_seek_finds_events_far_inside_large_packets(tmp_path: Path) -> None:
    made = Builder(tmp_path / "run.ptt")
    made.thread(
        1, [Event(T0 + 10 * i, "COND_WAIT_OUT" if i % 3 else "MUTEX_FREE", i) for i in range(3000)]
    )
    ts = Traceset(made.write())
    for at in (0, 1, 1499, 2998, 2999):
        ts.seek_time(10 * at)
        assert ts.middle_time(max_events=1)["object"].to_pylist() == [at]
        ts.seek_time(10 * at + 1)
        assert ts.middle_time(max_events=1)["object"].to_pylist() == [at + 1][: 2999 - at]


def test_names_of_events_are_the_names_that_occur(tmp_path: Path) -> None:
    made = Builder(tmp_path / "t")
    made.thread(1, [Event(T0, "MUTEX_TAKEN", 64, 5), Event(T0 + 1, "MUTEX_FREE", 64, 6)])
    ts = Traceset(made.write())
    assert set(ts.events()["event"].chunk(0).dictionary.to_pylist()) == {
        "MUTEX_TAKEN", "MUTEX_FREE",
    }  # fmt: skip
    assert ts.events()["event"].to_pylist() == ["MUTEX_TAKEN", "MUTEX_FREE"]
    assert ts.events(10**15)["event"].chunk(0).dictionary.to_pylist() == []
    ts.seek_time(0)
    assert ts.middle_time(max_events=1)["event"].chunk(0).dictionary.to_pylist() == ["MUTEX_TAKEN"]
