"""Locks over time: waits and holds in each bin of a range of time, and moments of change.

A wait or hold that reaches over the edge of a bin adds to the time of both bins. It counts once in
the numbers and percentiles: in the bin where it ends, or where the range ends. So numbers and times
add up to the figures of a report on the range. At a change, the length of waits or holds changes by
more than their scatter. Only waits and holds that lie completely in the range show changes.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.model import Counted, model_steps
from nptltrace.catalog import DOMAINS
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.trace.objects.chosen import Chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.model import Window
    from nptltrace.trace.traceset import Traceset

__all__ = ["Bins", "Change", "LockOverTime", "Place", "over_time", "significant_ends"]

_CONTENDED = WAIT_CLASSES.index("contended")
_KINDS: dict[str, type[np.generic]] = {
    "object": np.uint32, "t_ns": np.int64, "dur_ns": np.int64,
}  # fmt: skip
_BLOCK = 1 << 18  # rows
_BARRIER = DOMAINS["barrier"]
# At a change, the median grows or shrinks by at least this factor.
_TIMES = 1.5
# Smallest number of lengths on each side of a change.
_FEW = 30
# Smallest difference of the logarithms of the lengths, in standard errors. The bound is high for
# two reasons. The place of a change is chosen among many places. And the correlation of successive
# lengths is only an estimate.
_ERRORS = 8.0
_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the length of a lock's waits or holds.

    Attributes:
        what: Whether waits or holds changed.
        t_ns: Beginning of the first wait or hold after the change, in ns.
        before: Number of waits or holds since the previous change, or since the range begins.
        after: Number of waits or holds until the next change, or until the range ends.
        before_ns: Median length before.
        after_ns: Median length after.
    """

    what: Literal["wait", "hold"]
    t_ns: int
    before: int
    after: int
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True)
class Bins:
    """Waits or holds in bins of equal width.

    Attributes:
        count: Number of waits or holds that end in each bin. The last bin also counts waits or
            holds that end after the range.
        ns: Their time in each bin, added up.
        p50_ns: Median length of the counted waits or holds; 0 if there is none.
        p99_ns: 99th percentile of their length; 0 if there is none.
    """

    count: NDArray[np.int64]
    ns: NDArray[np.int64]
    p50_ns: NDArray[np.int64]
    p99_ns: NDArray[np.int64]


class Place(NamedTuple):
    """Identifies a lock: all objects with these four values.

    Attributes:
        process: Number of the process.
        address: Address of the objects, which follow one another there.
        kind: Number of their kind in the model.
        init_site: Call site of their initialization; 0 if unknown.
    """

    process: int
    address: int
    kind: int
    init_site: int


@dataclass(frozen=True, slots=True)
class LockOverTime:
    """The waits and holds of a lock over time.

    Attributes:
        place: Identifies the lock.
        waits: Contended waits.
        holds: Holds.
        changes: Changes of waits and holds, in the order of time.
    """

    place: Place
    waits: Bins
    holds: Bins
    changes: list[Change]


def over_time(
    source: Traceset,
    window: Window,
    locks: Sequence[Place],
    edges: NDArray[np.int64],
    step: Callable[[int], None] | None = None,
) -> list[LockOverTime]:
    """Return some locks over time.

    Args:
        source: The opened traces.
        window: The part to look at.
        locks: The locks.
        edges: Edges of the bins in ns, ascending: one more than the number of bins.
        step: Called now and then with the time of the last event so far, in ns.

    Raises:
        NativeError: Memory is out.
    """
    if not locks:
        return []
    waits, holds = _Parts({**_KINDS, "waker_t_ns": np.int64}), _Parts(_KINDS)
    counted = Counted(objects=[Chosen(lock.process, lock.address) for lock in locks])
    numbers: dict[Place, list[int]] = {lock: [] for lock in locks}
    for model, ts in model_steps(source, libptttrack_sums.ROWS, window=window, counted=counted):
        rows = model.table("waits", copy=False)
        waits.add(rows[rows["wait_class"] == _CONTENDED])
        holds.add(model.table("holds", copy=False))
        model.drop_rows()
        if step is not None:
            step(ts)
        if ts == libptttrack_sums.END:
            table, sites = model.table("objects"), model.table("sites")["address"]
            columns = [table[name].tolist() for name in ("process", "address", "kind")]
            inits = sites[table["init_site"]].tolist()
            for number, place in enumerate(zip(*columns, inits, strict=True)):
                if place in numbers:
                    numbers[Place(*place)].append(number)
    lock_of = np.full(len(table), len(locks), np.int16)
    for lock, objects in enumerate(numbers.values()):
        lock_of[objects] = lock
    bounds = window.of(source)
    by_lock = zip(
        numbers, waits.split(lock_of, len(locks), bounds), holds.split(lock_of, len(locks), bounds),
        strict=True,
    )  # fmt: skip
    return [_lock(*of_lock, edges) for of_lock in by_lock]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Waits or holds: columns of one length.

    Attributes:
        object: Numbers of objects in the model.
        t_ns: When they began.
        dur_ns: How long they took.
        waker_t_ns: When others ended the waits; empty for holds.
        whole: Whether they lie completely in the range.
    """

    object: NDArray[Any]
    t_ns: NDArray[Any]
    dur_ns: NDArray[Any]
    waker_t_ns: NDArray[Any]
    whole: NDArray[Any]

    def chosen(self, rows: NDArray[Any] | slice) -> _Rows:
        """Return some of the rows, in the given order."""
        wakers = self.waker_t_ns
        return _Rows(
            self.object[rows], self.t_ns[rows], self.dur_ns[rows],
            wakers[rows] if len(wakers) else wakers, self.whole[rows],
        )  # fmt: skip


class _Column:
    """A column of numbers that grows. Its memory goes back to the system when it is not used."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._kind, self._room = np.dtype(kind), 0
        self.blocks: list[NDArray[Any]] = []

    def add(self, values: NDArray[Any]) -> None:
        """Add values, copied."""
        while len(values):
            if not self._room:
                # On the heap, blocks would lie between memory that stays in use.
                size = _BLOCK * self._kind.itemsize
                memory = mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
                self.blocks.append(np.frombuffer(memory, self._kind))
                self._room = _BLOCK
            at, n = _BLOCK - self._room, min(self._room, len(values))
            self.blocks[-1][at : at + n] = values[:n]
            self._room -= n
            values = values[n:]

    def chosen(self, masks: Sequence[NDArray[np.bool_]]) -> NDArray[Any]:
        """Return the values that are true in the masks, which are as long as the blocks."""
        parts = [block[mask] for block, mask in zip(self.blocks, masks, strict=True)]
        return np.concatenate([np.empty(0, self._kind), *parts])

    def end(self) -> None:
        """Shorten the last block to its values."""
        if self._room:
            self.blocks[-1] = self.blocks[-1][: -self._room]


class _Parts:
    """The rows of a model as it yields them. There may be millions.

    Args:
        kinds: The columns besides `whole`, with the types of their values.
    """

    def __init__(self, kinds: Mapping[str, type[np.generic]]) -> None:
        self._columns = {name: _Column(kind) for name, kind in kinds.items()}
        self._whole = _Column(np.bool_)

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows."""
        for name, column in self._columns.items():
            column.add(rows[name])
        self._whole.add(rows["open"] == 0)

    def split(self, lock_of: NDArray[np.int16], locks: int, bounds: Window) -> Iterator[_Rows]:
        """Yield the rows of each lock, and leave this object empty.

        Args:
            lock_of: The number of the lock by object; other numbers for other objects.
            locks: Number of locks.
            bounds: The range; rows that reach out of it are not whole.
        """
        columns = {**self._columns, "whole": self._whole}
        for column in columns.values():
            column.end()
        lock = [lock_of[objects] for objects in columns["object"].blocks]
        for number in range(locks):
            masks = [block == number for block in lock]
            chosen = {"waker_t_ns": np.empty(0, np.int64)}
            for name, column in columns.items():
                chosen[name] = column.chosen(masks)
                if number + 1 == locks:
                    column.blocks.clear()
            rows = _Rows(**chosen)
            _clip(rows, bounds)
            yield rows


def _clip(rows: _Rows, bounds: Window) -> None:
    """Mark the waits or holds that reach out of a window as not whole."""
    if bounds.begin_ns is not None:
        rows.whole[rows.t_ns <= bounds.begin_ns] = False
    if bounds.end_ns is not None:
        rows.whole[rows.t_ns + rows.dur_ns >= bounds.end_ns] = False


def _lock(place: Place, waits: _Rows, holds: _Rows, edges: NDArray[np.int64]) -> LockOverTime:
    compared = _rounds(waits) if place.kind == _BARRIER else waits
    changes = [change for rows in _generations(compared) for change in _changes("wait", rows)]
    changes += [change for rows in _generations(holds) for change in _changes("hold", rows)]
    changes.sort(key=lambda change: change.t_ns)
    return LockOverTime(place, _bins(waits, edges), _bins(holds, edges), changes)


def _rounds(waits: _Rows) -> _Rows:
    """Return for each round of a barrier only the wait of the first thread.

    The later a thread comes, the shorter it waits. So the other lengths of a round mean nothing.
    """
    waits = waits.chosen(waits.whole & (waits.waker_t_ns != libptttrack_sums.NEVER))
    waits = waits.chosen(np.lexsort((waits.t_ns, waits.waker_t_ns, waits.object)))
    first = np.ones(len(waits.object), np.bool_)
    first[1:] = (waits.object[1:] != waits.object[:-1]) | (
        waits.waker_t_ns[1:] != waits.waker_t_ns[:-1]
    )
    return waits.chosen(first)


def _generations(rows: _Rows) -> Iterator[_Rows]:
    """Yield the waits or holds of each object at the address, if they are enough for a change.

    Waits or holds that do not lie completely in the range are left out.
    """
    rows = rows.chosen(rows.whole)
    if np.any(rows.object[1:] < rows.object[:-1]):
        rows = rows.chosen(np.argsort(rows.object, kind="stable"))
    ends = np.flatnonzero(np.diff(rows.object.astype(np.int64))) + 1
    for begin, end in pairwise([0, *ends.tolist(), len(rows.object)]):
        if end - begin >= 2 * _FEW:
            yield rows.chosen(slice(begin, end))


# ---- bins ----


def _bins(rows: _Rows, edges: NDArray[np.int64]) -> Bins:
    ends, lengths = rows.t_ns + rows.dur_ns, rows.dur_ns
    order = _order(ends)
    ends, lengths = ends[order], lengths[order]
    ns = np.diff(_before(rows.t_ns[_order(rows.t_ns)], edges) - _before(ends, edges))
    # The first bin has all that end before the second bin, the last bin all that end later.
    bounds = [0, *np.searchsorted(ends, edges[1:-1]).tolist(), len(ends)]
    percentiles = np.zeros((2, len(edges) - 1), np.int64)
    for number, (first, end) in enumerate(pairwise(bounds)):
        if end > first:
            ranks = [ceil(share * (end - first)) - 1 for share in (0.5, 0.99)]
            percentiles[:, number] = np.partition(lengths[first:end], ranks)[ranks]
    return Bins(np.diff(bounds), ns, *percentiles)


def _order(times: NDArray[Any]) -> NDArray[np.int64] | slice:
    """Return what sorts times. Most are sorted, and others nearly: a stable sort is fast then."""
    if np.all(times[1:] >= times[:-1]):
        return slice(None)
    return np.argsort(times, kind="stable")


def _before(times: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each edge the sum of the times from ascending `times` to the edge."""
    n = np.searchsorted(times, edges)
    sums = np.cumsum([times[a:b].sum() for a, b in pairwise([0, *n.tolist()])])
    # Products beyond 2^63 wrap, and the sums wrap too. So their difference is right.
    return np.asarray(n * edges - sums)


# ---- changes ----


def _changes(what: Literal["wait", "hold"], rows: _Rows) -> list[Change]:
    """Return the clearest changes, at most `_CHANGES`."""
    order = _order(rows.t_ns)
    t_ns, lengths = rows.t_ns[order], rows.dur_ns[order]
    logs = lengths.astype(np.float64)
    np.log2(np.maximum(logs, 1, out=logs), out=logs)
    ends = significant_ends(logs)
    return [
        Change(
            what, int(t_ns[at]), at - begin, end - at,
            int(np.median(lengths[begin:at])), int(np.median(lengths[at:end])),
        )
        for begin, at, end in zip(ends, ends[1:], ends[2:], strict=False)
    ]  # fmt: skip


def significant_ends(logs: NDArray[np.float64]) -> list[int]:
    """Return the indices of significant changes in a sequence, between 0 and its length.

    Candidates are chosen as if the lengths were independent. Then they are tested again with the
    correlation of the lengths, the weakest candidate first. That correlation needs the candidates:
    it is the correlation after the mean of each part is subtracted.

    Args:
        logs: Binary logarithms of lengths, in the order of time.
    """
    ends = [0, len(logs)]
    while len(ends) < _CHANGES + 2:
        errors, at = max(_clearest(logs, begin, end) for begin, end in pairwise(ends))
        if errors < _ERRORS:
            break
        ends = sorted([*ends, at])
    while len(ends) > 2:  # noqa: PLR2004 -- the beginning and the end
        errors, at = min(_errors_at(logs, ends))
        if errors >= _ERRORS:
            break
        ends.remove(at)
    return ends


def _clearest(logs: NDArray[np.float64], begin: int, end: int) -> tuple[float, int]:
    """Return the index of the clearest change between two indices, after its standard errors.

    0 standard errors mean that there is no change.
    """
    part = logs[begin:end]
    n = len(part)
    if n < 2 * _FEW:  # next to another change
        return 0.0, 0
    sums, mean = np.cumsum(part), part.mean()
    best, at = -1.0, 0
    for first in range(_FEW, n - _FEW + 1, _BLOCK):
        before = np.arange(first, min(first + _BLOCK, n - _FEW + 1))
        gap = sums[before[0] - 1 : before[-1]] - before * mean
        gap = np.abs(gap / np.sqrt(before * (n - before) / n))
        number = int(np.argmax(gap))
        if gap[number] > best:
            best, at = float(gap[number]), int(before[number])
    return _errors(part[:at], part[at:]), begin + at


def _errors(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the difference of two parts in standard errors; 0 if it is less than `_TIMES`."""
    if abs(np.median(right) - np.median(left)) < np.log2(_TIMES):
        return 0.0
    n, m = len(left), len(right)
    scatter = np.sqrt((left.var() * n + right.var() * m) / (n + m))
    gap = abs(right.mean() - left.mean()) * np.sqrt(n * m / (n + m))
    return float(gap / max(float(scatter), 1e-9))


def _errors_at(logs: NDArray[np.float64], ends: list[int]) -> Iterator[tuple[float, int]]:
    """Yield the standard errors of each change for correlated lengths, and its index."""
    parts = [logs[begin:end] for begin, end in pairwise(ends)]
    time = _correlation_time(np.concatenate([part - part.mean() for part in parts]))
    for (left, right), at in zip(pairwise(parts), ends[1:-1], strict=True):
        yield _errors(left, right) / np.sqrt(time), at


def _correlation_time(residuals: NDArray[np.float64]) -> float:
    """Return how many successive lengths say as much about their mean as one independent length.

    The result is the larger of two estimates (G. S. Fishman, "Discrete-Event Simulation", 2001,
    chapter 6). The correlation of neighbours treats the lengths as an autoregressive process of
    order 1. The variance of the means of batches also shows longer phases.

    Args:
        residuals: Differences from the mean, in the order of time.

    Returns:
        1.0 for independent lengths, more for correlated lengths.
    """
    n = len(residuals)
    variance = float(np.mean(residuals**2))
    if variance <= 0:
        return 1.0
    neighbours = float(np.mean(residuals[1:] * residuals[:-1])) / variance
    neighbours = min(max(neighbours, 0.0), 1 - 2 / n)
    size = int(np.sqrt(n))
    batches = residuals[: n // size * size].reshape(-1, size).mean(axis=1)
    return max(
        1.0, (1 + neighbours) / (1 - neighbours), size * float(np.mean(batches**2)) / variance
    )
