"""Traces of several clocks and machines on one time line, and merged into one clock."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from nptltrace.api import Traceset
from nptltrace.errors import UsageError
from tests.trace.builder import BOOT, CLOCK, Builder, Event, rewrite_uuid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

S = 10**9
TSC = 2_500_000_000
NEVER = 0


@dataclass
class Machine:
    """A machine, and the traces from that machine."""

    directory: Path
    boot: str
    began_unix_ns: int = BOOT
    known: dict[str, Any] = field(default_factory=lambda: {"spread_ns": 70, "max_error_ns": 2000})
    traces: int = 0

    def trace(
        self, *times_ns: int, clock: str = "tsc", frequency: int = TSC, records: bool = False,
        span_s: int = 1, pid: int = 100,
        kind: str = "MUTEX_TAKEN",
    ) -> Path:  # fmt: skip
        """Write a trace with events at times in ns since the start of the machine."""
        if clock == "monotonic":
            frequency = S
        self.traces += 1
        name = f"{self.boot}{self.traces}"
        made = Builder(self.directory / name, frequency=frequency, boot_id=self.boot)
        ticks = [-(-time * frequency // S) for time in times_ns]
        made.thread(
            pid + 1,
            [Event(t, kind, n + 1, site=5) for n, t in enumerate(ticks)],
            pid=pid,
        )
        start = times_ns[0]
        pairs = {
            "name": clock, "start": ticks[0], "start_monotonic_ns": start,
            "start_unix_ns": self.began_unix_ns + start, **self.known,
        }  # fmt: skip
        made.session = {
            "state": "complete", "clock": pairs, "start_unix_ns": self.began_unix_ns + start,
            "end_unix_ns": self.began_unix_ns + start + span_s * S,
        }  # fmt: skip
        made.processes = [{"process": {"index": 0, "pid": pid, "exe": f"/bin/{name}"}}]
        path = made.write_records() if records else made.write()
        text = (path / "metadata").read_text()
        text = text.replace('clock = "tsc"', f'clock = "{clock}"')
        text = text.replace("offset_s = 1700000000", f"offset_s = {self.began_unix_ns // S}")
        text = text.replace(str(CLOCK), str(uuid_of(self.boot + clock)))
        (path / "metadata").write_text(text)
        rewrite_uuid(path, uuid_of(name))
        return path


def uuid_of(text: str) -> UUID:
    return UUID(bytes=text.encode().ljust(16, b"-")[:16])


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "here")


@pytest.fixture
def there(tmp_path: Path) -> Machine:
    """A machine that started 5 s later."""
    return Machine(tmp_path, "there", BOOT + 5 * S, {"spread_ns": 30, "max_error_ns": 4000})


def rows(*traces: Path) -> list[tuple[int, int]]:
    table = Traceset(*traces).events()
    return list(zip(table["ts_ns"].to_pylist(), table["object"].to_pylist(), strict=True))


def shown(ptt: Ptt, trace: Path, *more: Path) -> list[dict[str, Any]]:
    out = ptt("view", "--format", "jsonl", trace, *more).stdout
    return [json.loads(line) for line in out.splitlines()]


def read_by_babeltrace(trace: Path) -> list[str]:
    done = subprocess.run(
        ["babeltrace2", "--clock-seconds", "--no-delta", trace],
        capture_output=True, encoding="utf-8", errors="replace", check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_traces_of_one_clock_are_exact_despite_measured_speeds(here: Machine) -> None:
    # 40 ppm apart: after 1000 s, measured times of day would be off by 40 ms.
    first = here.trace(1000 * S, 1000 * S + 40, frequency=TSC)
    other = here.trace(1000 * S + 20, frequency=TSC + 100_000, span_s=60)
    ticks = [1000 * TSC, 1000 * TSC + 100, -(-(1000 * S + 20) * (TSC + 100_000) // S)]
    source = Traceset(first, other)
    assert source.alignment.one_clock
    assert source.alignment.uncertainty_ns == 0
    assert source.alignment.lead == 1  # its recorder measured the speed for longer
    assert source.remarks() == []
    expected = sorted((t - ticks[0]) * S // (TSC + 100_000) for t in ticks)
    assert [t for t, _ in rows(first, other)] == expected


def test_one_clock_with_two_speeds_is_refused(here: Machine, ptt: Ptt) -> None:
    traces = here.trace(S), here.trace(S, frequency=TSC * 2)
    message = ptt("view", *traces, status=2).stderr
    assert message.startswith("ptt: error: ")
    assert message.endswith(
        f"claim to share a clock, but with {TSC} and {TSC * 2} ticks per second: "
        "they cannot be read together\n"
    )


def test_two_clocks_of_one_machine_are_aligned(here: Machine, ptt: Ptt) -> None:
    # The time of day was set back by a second in between; that does not matter.
    first = here.trace(S, S + 400, S + 800)
    here.began_unix_ns -= S
    second = here.trace(S + 200, S + 600, clock="monotonic")
    assert rows(first, second) == [(0, 1), (200, 1), (400, 2), (600, 2), (800, 3)]
    found = Traceset(first, second).alignment
    assert (found.one_clock, found.uncertainty_ns, found.start_unix_ns) == (False, 70, BOOT + S)
    message = ptt("view", first, second).stderr
    assert (
        message == "ptt: warning: the traces use different clocks of one machine, to within 70 ns\n"
    )


def test_a_part_of_a_trace_keeps_its_place(here: Machine, tmp_path: Path, ptt: Ptt) -> None:
    first = here.trace(S, S + 400, S + 800)
    second = here.trace(S + 200, S + 600, clock="monotonic")
    part = tmp_path / "part.ptt"
    ptt("cut", "--start", "1", "--count", "2", "-o", part, first)
    assert rows(part, second) == [(200, 1), (400, 2), (600, 2), (800, 3)]
    both = tmp_path / "both.ptt"
    ptt("merge", "-o", both, part, second)
    assert rows(both) == rows(part, second)


def test_clocks_of_two_machines_are_aligned(here: Machine, there: Machine, ptt: Ptt) -> None:
    first = here.trace(7 * S, 7 * S + 300)
    second = there.trace(2 * S + 100, 2 * S + 200, frequency=S * 3)
    third = there.trace(2 * S + 150, clock="monotonic")
    assert [t for t, _ in rows(first, second, third)] == [0, 100, 150, 200, 300]
    assert rows(first, second) == rows(second, first)
    ts = Traceset(first, second)
    assert ts.alignment.uncertainty_ns == 6100
    assert ptt("stat", first, second).stderr == (
        "ptt: warning: the traces come from different machines: they are aligned by the time of "
        "day, to within 6.1 us\n"
    )


def test_machines_with_unknown_clock_errors_are_reported(here: Machine, there: Machine) -> None:
    del there.known["max_error_ns"]
    found = Traceset(here.trace(7 * S), there.trace(S))
    assert found.alignment.uncertainty_ns is None
    assert found.remarks()[0].endswith("nobody knows how well the clocks agree")


def test_traces_without_common_time_are_refused(here: Machine, there: Machine, ptt: Ptt) -> None:
    first = here.trace(S)
    there.began_unix_ns = NEVER
    second = there.trace(S)
    assert "they cannot be read together" in ptt("stat", first, second, status=2).stderr
    with pytest.raises(UsageError, match="has no time of day for its clock"):
        Traceset(second, first)
    assert rows(second) == [(0, 1)]


def test_merge_writes_one_clock(here: Machine, there: Machine, tmp_path: Path, ptt: Ptt) -> None:
    traces = [
        here.trace(7 * S, 7 * S + 301, 7 * S + 999),
        there.trace(2 * S + 100, 2 * S + 101, frequency=S * 2),
        here.trace(7 * S + 50, 7 * S + 400, clock="monotonic"),
    ]
    both = tmp_path / "both.ptt"
    ptt("merge", "-o", both, *traces)
    apart, together = shown(ptt, traces[0], *traces[1:]), shown(ptt, both)
    assert [(row["object"], row["pid"]) for row in together] == [
        (row["object"], row["pid"]) for row in apart
    ]
    # The fastest clock stays; the times of others move by less than a tick of the fastest clock.
    assert all(abs(a["ts_ns"] - b["ts_ns"]) <= 1 for a, b in zip(apart, together, strict=True))
    assert Traceset(both).alignment.one_clock
    first = read_by_babeltrace(both)
    assert len(first) == 7
    assert first[0].startswith(f"[{(BOOT + 7 * S) // S}.000000000]")
    # The merged trace still has the clock of the first trace, so both stay exact together.
    assert Traceset(both, here.trace(8 * S)).alignment.one_clock


def test_merge_of_different_handlers(here: Machine, tmp_path: Path, ptt: Ptt) -> None:
    slots = here.trace(S, S + 300)
    records = here.trace(S + 100, S + 200, clock="monotonic", records=True, pid=200)
    for name, traces in (("a.ptt", [slots, records]), ("b.ptt", [records, slots])):
        both = tmp_path / name
        ptt("merge", "-o", both, *traces)
        assert rows(both) == rows(*traces) == [(0, 1), (100, 1), (200, 2), (300, 2)]
        assert len(read_by_babeltrace(both)) == 4
        again = tmp_path / f"cut-{name}"
        ptt("cut", "--start", "1", "--count", "2", "-o", again, both)
        assert [row["pid"] for row in shown(ptt, again)] == [200, 200]


def test_merge_refuses_processes_that_cannot_be_distinguished(
    here: Machine, tmp_path: Path, ptt: Ptt
) -> None:
    traces = here.trace(S), here.trace(S + 100, clock="monotonic", records=True)
    message = ptt("merge", "-o", tmp_path / "both.ptt", *traces, status=2).stderr
    assert "both have a process 100" in message
    assert not (tmp_path / "both.ptt").exists()


@pytest.mark.parametrize("kind", ["MUTEX_TAKEN", "COND_WAIT_OUT"])
def test_merge_splits_packets_that_are_too_long_for_40_bits(
    here: Machine, there: Machine, tmp_path: Path, ptt: Ptt, kind: str
) -> None:
    # 1000 s are less than 2^40 ns, and more than 2^40 ticks.
    slow = there.trace(*(S + 100 * S * n for n in range(11)), clock="monotonic", kind=kind)
    fast = here.trace(6 * S + 5)
    both = tmp_path / "both.ptt"
    ptt("merge", "-o", both, fast, slow)
    expected = rows(fast, slow)
    assert expected[-1] == (1000 * S, 11)
    assert rows(both) == expected
    assert len(read_by_babeltrace(both)) == 12


def test_merge_with_times_before_the_clock(
    here: Machine, there: Machine, tmp_path: Path, ptt: Ptt
) -> None:
    late = there.trace(S, S + 1000)
    early = here.trace(S, S + 400, clock="monotonic")  # 5 s before the start of the other machine
    both = tmp_path / "both.ptt"
    ptt("merge", "-o", both, late, early)
    assert rows(both) == rows(late, early)
    lines = read_by_babeltrace(both)
    assert lines[0].startswith(f"[{(BOOT + S) // S}.000000000]")
    # No other trace has the clock of the merged trace.
    assert not Traceset(both, late).alignment.one_clock
