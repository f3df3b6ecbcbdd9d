"""One time line for traces of several clocks or machines, and the uncertainty of its times.

Times of one clock are exact. Clocks of one machine are aligned by readings that the recorder took
of all clocks at one moment. Machines are aligned by the time of day.
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
# Each trace measures the speed of its clock. Speeds of one clock differ by no more than this.
_SPEED_TOLERANCE = 0.001
# An earlier time is not a time of day: the clock began to count at 0.
_EPOCH_MIN_NS = 10 * 365 * 86400 * _NS


@dataclass(frozen=True, slots=True)
class Clocked:
    """A trace and its clock.

    Attributes:
        path: Directory of the trace.
        metadata: The metadata, with clock and environment.
        session: How the trace was recorded.
        begin: The tick at the begin of the trace; None for a trace without events.
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
        """The name of the clock among the clocks of the machine."""
        return str(self.metadata.env.get("clock") or self.session.string("clock", "name"))

    @property
    def start(self) -> int:
        """The tick with the best-known time of day."""
        start = self.session.number("clock", "start")
        return start if start is not None else self.begin or 0

    @property
    def unix_ns(self) -> int | None:
        """Time of day at `start`; None for a clock that was not compared with it."""
        unix_ns = self.metadata.clock.unix_ns(self.start)
        return unix_ns if unix_ns >= _EPOCH_MIN_NS else None

    @property
    def monotonic_ns(self) -> int | None:
        """CLOCK_MONOTONIC at `start`; None if the recorder did not read it."""
        if self.kind == "monotonic":
            return self.start * _NS // self.metadata.clock.frequency
        return self.session.number("clock", "start_monotonic_ns")

    @property
    def spread_ns(self) -> int | None:
        """The time that it took to read all clocks at `start`; None if unknown."""
        return 0 if self.kind == "monotonic" else self.session.number("clock", "spread_ns")

    @property
    def error_ns(self) -> int | None:
        """The maximum error of the time of day by the kernel (adjtimex(2)); None if unknown."""
        return self.session.number("clock", "max_error_ns")

    @property
    def span_ns(self) -> int:
        """The duration of the recording; 0 if unknown."""
        ends = self.session.number("start_unix_ns"), self.session.number("end_unix_ns")
        return (ends[1] - ends[0]) if ends[0] is not None and ends[1] is not None else 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Converts ticks of a trace to time: (ticks - origin) * 1e9 / frequency + shift_ns."""

    frequency: int
    origin: int
    shift_ns: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """The places of traces on one time line.

    Attributes:
        placements: The placement of each trace.
        lead: Number of the leading trace: its clock describes a merged trace best.
        one_clock: Whether all traces share one clock, so that ticks order their events.
        start_unix_ns: Unix time of time 0.
        uncertainty_ns: The greatest error of a time between events of different traces; 0 for one
            clock, None if unknown.
        note: A sentence for the user; empty for one clock.
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
        UsageError: Clocks contradict each other, or the readings to align clocks are missing.
    """
    clocks = _grouped(range(len(traces)), lambda a, b: _same_clock(traces[a], traces[b]))
    leads = [max(clock, key=lambda number: traces[number].span_ns) for clock in clocks]
    for clock in clocks:
        _check_speed([traces[number] for number in clock])
    if len(clocks) == 1:
        shared = traces[leads[0]].metadata.clock
        origin = min((t.begin for t in traces if t.begin is not None), default=0)
        placements = (Placement(shared.frequency, origin, 0),) * len(traces)
        return Alignment(placements, leads[0], True, shared.unix_ns(origin), 0, "")  # noqa: FBT003 -- a field
    machines = _grouped(
        leads, lambda a, b: bool(traces[a].boot) and traces[a].boot == traces[b].boot
    )
    return _several_clocks(traces, clocks, leads, machines)


def _several_clocks(
    traces: Sequence[Clocked],
    clocks: Sequence[Sequence[int]],
    leads: Sequence[int],
    machines: Sequence[Sequence[int]],
) -> Alignment:
    unix = _times_of_day(traces, machines)
    # By clock: the tick at the begin of its first trace, and the time of day at this tick.
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
    """Return the time of day at `start`, in ns, by number of each clock's leading trace."""
    times: dict[int, int] = {}
    for machine in machines:
        known = [n for n in machine if traces[n].unix_ns is not None]
        lead = known[0] if known else machine[0]
        base = traces[lead].unix_ns
        if base is None and len(machines) > 1:
            other = next(n for m in machines if m is not machine for n in m)
            raise UsageError(
                f"{traces[lead].path} and {traces[other].path} use different clocks, and the first "
                "has no time of day for its clock: they cannot be read together"
            )
        base = base or 0
        for number in machine:
            monotonic, lead_monotonic = traces[number].monotonic_ns, traces[lead].monotonic_ns
            unix_ns = traces[number].unix_ns
            if monotonic is not None and lead_monotonic is not None:
                times[number] = base + monotonic - lead_monotonic
            elif unix_ns is not None:
                times[number] = unix_ns
            else:
                raise UsageError(
                    f"{traces[number].path} and {traces[lead].path} use different clocks that "
                    "nobody compared: they cannot be read together"
                )
    return times


def _uncertainty(traces: Sequence[Clocked], machines: Sequence[Sequence[int]]) -> int | None:
    """Return the sum of the errors of both traces, for the worst pair; None if unknown."""
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
        text = "the traces use different clocks of one machine"
    elif len(machines) == 1:
        text = "the traces use different clocks"
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


def _same_clock(left: Clocked, right: Clocked) -> bool:
    """Return whether two traces share a clock: by its UUID, or by boot and kind of clock."""
    a, b = left.metadata.clock, right.metadata.clock
    if a.uuid is not None and a.uuid == b.uuid:
        return True
    if left.boot or right.boot:
        return left.boot == right.boot and left.kind == right.kind
    same = (a.frequency, a.offset_s, a.offset) == (b.frequency, b.offset_s, b.offset)
    return same and left.metadata.env.get("hostname") == right.metadata.env.get("hostname")


def _check_speed(traces: Sequence[Clocked]) -> None:
    """Refuse traces that claim to share a clock, but measured different speeds."""
    slow = min(traces, key=lambda trace: trace.metadata.clock.frequency)
    fast = max(traces, key=lambda trace: trace.metadata.clock.frequency)
    low, high = slow.metadata.clock.frequency, fast.metadata.clock.frequency
    if high - low > high * _SPEED_TOLERANCE:
        raise UsageError(
            f"{slow.path} and {fast.path} claim to share a clock, but with {low} and {high} "
            "ticks per second: they cannot be read together"
        )
