"""One time line for traces of several clocks or machines, and how far it can be trusted.

Traces by one clock are exact. Clocks of one machine are put together by readings that the recorder
took of them at one moment; machines, by the time of day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nptltrace.trace.info import Session
    from nptltrace.trace.tsdl_reader import Metadata

__all__ = ["Alignment", "Clocked", "Placement", "align"]

_NS = 10**9
# A clock's speed is measured anew for each trace; more than this is not one clock.
_SPEED_TOLERANCE = 0.001
# Before this a time of day is none: the clock began to count at 0.
_EPOCH_MIN_NS = 10 * 365 * 86400 * _NS


@dataclass(frozen=True, slots=True)
class Clocked:
    """A trace, as far as its time is concerned.

    Attributes:
        path: Its directory.
        metadata: Its clock and environment.
        session: How it was recorded.
        begin: Tick at which it begins, None for one without events.
    """

    path: Path
    metadata: Metadata
    session: Session
    begin: int | None

    @property
    def boot(self) -> str:
        """Identity of the machine's boot, or empty."""
        return str(self.metadata.env.get("boot_id") or self.session.string("boot_id"))

    @property
    def kind(self) -> str:
        """Which of the machine's clocks it is by."""
        return str(self.metadata.env.get("clock") or self.session.string("clock", "name"))

    @property
    def start(self) -> int:
        """A tick whose time of day is known best."""
        start = self.session.number("clock", "start")
        return start if start is not None else self.begin or 0

    @property
    def unix_ns(self) -> int | None:
        """Time of day at `start`; None for a clock that nobody compared with it."""
        found = self.metadata.clock.unix_ns(self.start)
        return found if found >= _EPOCH_MIN_NS else None

    @property
    def monotonic_ns(self) -> int | None:
        """CLOCK_MONOTONIC at `start`, if it was read."""
        if self.kind == "monotonic":
            return self.start * _NS // self.metadata.clock.frequency
        return self.session.number("clock", "start_monotonic_ns")

    @property
    def spread_ns(self) -> int | None:
        """How long it took to read all clocks at `start`."""
        return 0 if self.kind == "monotonic" else self.session.number("clock", "spread_ns")

    @property
    def error_ns(self) -> int | None:
        """How far the machine's time of day may have been off, as its kernel knew."""
        return self.session.number("clock", "max_error_ns")

    @property
    def span_ns(self) -> int:
        """How long its clock was watched."""
        ends = self.session.number("start_unix_ns"), self.session.number("end_unix_ns")
        return (ends[1] - ends[0]) if ends[0] is not None and ends[1] is not None else 0


@dataclass(frozen=True, slots=True)
class Placement:
    """How ticks of a trace become time: (ticks - origin) * 1e9 / frequency + shift_ns."""

    frequency: int
    origin: int
    shift_ns: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """How traces lie on one time line.

    Attributes:
        placements: Of each trace.
        lead: Number of the trace whose clock describes all of them best.
        one_clock: Whether all are by one clock, so that ticks order their events.
        start_unix_ns: Time of day of time 0.
        uncertainty_ns: How far events of different traces may be apart from what is shown; 0 by
            one clock, None where nobody knows.
        note: A sentence for the user; empty by one clock.
    """

    placements: tuple[Placement, ...]
    lead: int
    one_clock: bool
    start_unix_ns: int
    uncertainty_ns: int | None
    note: str


def align(traces: Sequence[Clocked]) -> Alignment:
    """Put traces on one time line.

    Raises:
        UsageError: There is none that would be true.
    """
    clocks = _grouped(range(len(traces)), lambda a, b: _same_clock(traces[a], traces[b]))
    leads = [max(clock, key=lambda number: traces[number].span_ns) for clock in clocks]
    for clock in clocks:
        _check_speed([traces[number] for number in clock])
    if len(clocks) == 1:
        return _one_clock(traces, leads[0])
    machines = _grouped(
        leads, lambda a, b: bool(traces[a].boot) and traces[a].boot == traces[b].boot
    )
    return _several(traces, clocks, leads, machines)


def _one_clock(traces: Sequence[Clocked], lead: int) -> Alignment:
    clock = traces[lead].metadata.clock
    origin = min((t.begin for t in traces if t.begin is not None), default=0)
    place = Placement(clock.frequency, origin, 0)
    return Alignment((place,) * len(traces), lead, True, clock.unix_ns(origin), 0, "")  # noqa: FBT003 -- a field


def _several(
    traces: Sequence[Clocked],
    clocks: Sequence[Sequence[int]],
    leads: Sequence[int],
    machines: Sequence[Sequence[int]],
) -> Alignment:
    unix = _times_of_day(traces, machines)
    # Of each clock: the tick at which its first trace begins, and the time of day then.
    begins: list[tuple[int, int]] = []
    for clock, lead in zip(clocks, leads, strict=True):
        known = [begin for n in clock if (begin := traces[n].begin) is not None]
        start, frequency = traces[lead].start, traces[lead].metadata.clock.frequency
        begin = min(known, default=start)
        begins.append((begin, unix[lead] + (begin - start) * _NS // frequency))
    zero = min(at for _, at in begins)
    placements = {
        number: Placement(traces[lead].metadata.clock.frequency, begin, at - zero)
        for clock, lead, (begin, at) in zip(clocks, leads, begins, strict=True)
        for number in clock
    }
    finest = max(leads, key=lambda number: traces[number].metadata.clock.frequency)
    uncertainty = _uncertainty(traces, machines)
    note = _note(traces, machines, uncertainty)
    placed = tuple(placements[number] for number in range(len(traces)))
    return Alignment(placed, finest, False, zero, uncertainty, note)  # noqa: FBT003 -- a field


def _times_of_day(traces: Sequence[Clocked], machines: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the time of day at `start` of each clock's leading trace."""
    times: dict[int, int] = {}
    for machine in machines:
        known = [n for n in machine if traces[n].unix_ns is not None]
        lead = known[0] if known else machine[0]
        base = traces[lead].unix_ns
        if base is None and len(machines) > 1:
            other = next(n for m in machines if m is not machine for n in m)
            raise UsageError(
                f"{traces[lead].path} and {traces[other].path} ran on different clocks, and the "
                f"first does not say what time of day its clock began: they cannot be read together"
            )
        base = base or 0
        for number in machine:
            here, there = traces[number].monotonic_ns, traces[lead].monotonic_ns
            own = traces[number].unix_ns
            if here is not None and there is not None:
                times[number] = base + here - there
            elif own is not None:
                times[number] = own
            else:
                raise UsageError(
                    f"{traces[number].path} and {traces[lead].path} ran on different clocks that "
                    "nobody compared: they cannot be read together"
                )
    return times


def _uncertainty(traces: Sequence[Clocked], machines: Sequence[Sequence[int]]) -> int | None:
    """Return the sum of what may be wrong on both sides, for the worst pair."""
    readings = [traces[n].spread_ns for machine in machines for n in machine]
    if any(spread is None for spread in readings):
        return None
    total = sum(sorted(s for s in readings if s is not None)[-2:])
    if len(machines) == 1:
        return total
    errors = [traces[machine[0]].error_ns for machine in machines]
    if any(error is None for error in errors):
        return None
    return total + sum(sorted(e for e in errors if e is not None)[-2:])


def _note(
    traces: Sequence[Clocked], machines: Sequence[Sequence[int]], uncertainty: int | None
) -> str:
    if len(machines) == 1 and traces[machines[0][0]].boot:
        text = "the traces are by different clocks of one machine"
    elif len(machines) == 1:
        text = "the traces are by different clocks"
    else:
        text = "the traces come from different machines: they are aligned by the time of day"
    if uncertainty is None:
        return f"{text}; nobody knows how well the clocks agree"
    return f"{text}, to within {_duration(uncertainty)}"


def _duration(ns: int) -> str:
    for unit, size in (("s", _NS), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


def _grouped(numbers: Sequence[int], same: Callable[[int, int], bool]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        for group in groups:
            if any(same(number, other) for other in group):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def _same_clock(one: Clocked, two: Clocked) -> bool:
    """Return whether two traces are by one clock: as given, or by boot and kind of clock."""
    a, b = one.metadata.clock, two.metadata.clock
    if a.uuid is not None and a.uuid == b.uuid:
        return True
    if one.boot or two.boot:
        return one.boot == two.boot and one.kind == two.kind
    same = (a.frequency, a.offset_s, a.offset) == (b.frequency, b.offset_s, b.offset)
    return same and one.metadata.env.get("hostname") == two.metadata.env.get("hostname")


def _check_speed(traces: Sequence[Clocked]) -> None:
    """Refuse traces that claim one clock and contradict one another."""
    slow = min(traces, key=lambda trace: trace.metadata.clock.frequency)
    fast = max(traces, key=lambda trace: trace.metadata.clock.frequency)
    low, high = slow.metadata.clock.frequency, fast.metadata.clock.frequency
    if high - low > high * _SPEED_TOLERANCE:
        raise UsageError(
            f"{slow.path} and {fast.path} say that they are by one clock, but of {low} and {high} "
            "ticks a second: they cannot be read together"
        )
