"""The sums of one interval of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field

if TYPE_CHECKING:
    from typing import Any

    from nptltrace.analysis.stack_names import Frame

__all__ = ["BUCKETS", "CONTENDED", "Interval", "Row"]

# Bucket n of a histogram has the waits from 2**n ns to less than 2**(n+1) ns. The last bucket also
# has all longer waits, from 2.4 hours on.
BUCKETS = 44
CONTENDED = "contended"


@dataclass(frozen=True, slots=True)
class Row:
    """The waits with the same stacks, threads, lock and class.

    With `--sample-wait`, counts and times are estimates from the samples.

    Attributes:
        pid: The process of the waiting thread.
        exe: Path of its program.
        tid: The waiting thread.
        thread: Its name, or empty.
        lock: Name of the object, or its address.
        kind: Kind of the object, such as `mutex`.
        address: Its address.
        wait_class: Class of the waits; see `docs/explanation/waits.md`.
        owner_tid: The thread that had the object when the waits began; None if unknown.
        owner_thread: Its name, or empty.
        frames: The stack of the waiter, the innermost frame first.
        holder_frames: The stack of the holder; empty if unknown.
        count: Number of waits.
        samples: Number of waits that were looked at; the same as `count` without `--sample-wait`.
        total_ns: Their time.
        max_ns: The longest.
        held_ns: The part in which the object was held.
        ready_ns: The part in which the thread could have run; None if unknown for any of the waits.
        histogram: Numbers of waits; see `BUCKETS`.
    """

    pid: int
    exe: str
    tid: int
    thread: str
    lock: str
    kind: str
    address: int
    wait_class: str
    owner_tid: int | None
    owner_thread: str
    frames: tuple[Frame, ...]
    holder_frames: tuple[Frame, ...]
    count: float = 0.0
    samples: int = 0
    total_ns: float = 0.0
    max_ns: int = 0
    held_ns: float = 0.0
    ready_ns: float | None = None
    histogram: tuple[float, ...] = ()


@dataclass(slots=True)
class Interval:
    """The sums of one interval.

    Attributes:
        begin_ns: Begin, in ns since 1970.
        end_ns: End, likewise.
        rows: The sums.
        modules: Rows of the table `modules`, by name and build-id.
        run: Row of the table `runs`.
        below: Number and time of the waits below `--min-wait`.
        overflow: Number and time of the waits in rows that stand for all that did not fit.
        lost: Number of lost events.
    """

    begin_ns: int
    end_ns: int
    rows: list[Row] = field(default_factory=list)
    modules: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    below: tuple[int, int] = (0, 0)
    overflow: tuple[int, int] = (0, 0)
    lost: int = 0
