"""Locks over time: waits and holds in each bin of a range of time, and moments of change.

A wait or hold that reaches over the edge of a bin adds to the time of both bins. It counts once in
the numbers and percentiles: in the bin where it ends, or where the range ends. So numbers and times
add up to the figures of a report on the range. At a change, the length of waits or holds changes by
more than their scatter. Only waits and holds that lie completely in the range show changes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._dataclasses import dataclass
from nptltrace.analysis.model import Counted, model_steps
from nptltrace.catalog import DOMAINS
from nptltrace.catalog.tables import WAIT_CLASSES
from nptltrace.trace.objects.chosen import Chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.model import Window
    from nptltrace.trace.traceset import Traceset

__all__ = ["Bins", "Change", "LockOverTime", "Place", "over_time", "significant_ends"]

_CONTENDED = WAIT_CLASSES.index("contended")
_ROW = np.dtype(
    [
        ("object", np.uint32), ("t_ns", np.int64), ("dur_ns", np.int64), ("waker_t_ns", np.int64),
        ("whole", np.bool_),
    ]
)  # fmt: skip
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
    parts: dict[str, list[NDArray[Any]]] = {"waits": [], "holds": []}
    counted = Counted(objects=[Chosen(lock.process, lock.address) for lock in locks])
    numbers: dict[Place, list[int]] = {lock: [] for lock in locks}
    for model, ts in model_steps(source, libptttrack_sums.ROWS, window=window, counted=counted):
        rows = model.table("waits")
        parts["waits"].append(_kept(rows[rows["wait_class"] == _CONTENDED]))
        parts["holds"].append(_kept(model.table("holds")))
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
    waits, holds = (np.concatenate(pieces) for pieces in parts.values())
    bounds = window.of(source)
    for rows in (waits, holds):
        rows["whole"] &= _lies_in(rows, bounds)
    return [
        _lock(
            lock,
            waits[np.isin(waits["object"], objects)],
            holds[np.isin(holds["object"], objects)],
            edges,
        )
        for lock, objects in numbers.items()
    ]


def _lies_in(rows: NDArray[Any], bounds: Window) -> NDArray[np.bool_]:
    """Return for each wait or hold whether it lies completely in a window."""
    inside = np.ones(len(rows), np.bool_)
    if bounds.begin_ns is not None:
        inside &= rows["t_ns"] > bounds.begin_ns
    if bounds.end_ns is not None:
        inside &= rows["t_ns"] + rows["dur_ns"] < bounds.end_ns
    return inside


def _kept(rows: NDArray[Any]) -> NDArray[Any]:
    kept = np.empty(len(rows), _ROW)
    for name in ("object", "t_ns", "dur_ns"):
        kept[name] = rows[name]
    known = "waker_t_ns" in (rows.dtype.names or ())
    kept["waker_t_ns"] = rows["waker_t_ns"] if known else libptttrack_sums.NEVER
    kept["whole"] = rows["open"] == 0
    return kept


def _lock(
    place: Place, waits: NDArray[Any], holds: NDArray[Any], edges: NDArray[np.int64]
) -> LockOverTime:
    compared = _rounds(waits) if place.kind == _BARRIER else waits
    changes = [change for rows in _generations(compared) for change in _changes("wait", rows)]
    changes += [change for rows in _generations(holds) for change in _changes("hold", rows)]
    changes.sort(key=lambda change: change.t_ns)
    return LockOverTime(place, _bins(waits, edges), _bins(holds, edges), changes)


def _rounds(waits: NDArray[Any]) -> NDArray[Any]:
    """Return for each round of a barrier only the wait of the first thread.

    The later a thread comes, the shorter it waits. So the other lengths of a round mean nothing.
    """
    waits = waits[waits["whole"] & (waits["waker_t_ns"] != libptttrack_sums.NEVER)]
    waits = waits[np.lexsort((waits["t_ns"], waits["waker_t_ns"], waits["object"]))]
    first = np.ones(len(waits), np.bool_)
    same = (waits["object"][1:] == waits["object"][:-1]) & (
        waits["waker_t_ns"][1:] == waits["waker_t_ns"][:-1]
    )
    first[1:] = ~same
    return np.asarray(waits[first])


def _generations(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the waits or holds of each object at the address, if they are enough for a change.

    Waits or holds that do not lie completely in the range are left out.
    """
    rows = rows[rows["whole"]]
    rows = rows[np.argsort(rows["object"], kind="stable")]
    by_object = np.split(rows, np.flatnonzero(np.diff(rows["object"])) + 1)
    yield from (part for part in by_object if len(part) >= 2 * _FEW)


# ---- bins ----


def _bins(rows: NDArray[Any], edges: NDArray[np.int64]) -> Bins:
    bins = len(edges) - 1
    ns = np.diff(_until(rows["t_ns"], rows["t_ns"] + rows["dur_ns"], edges))
    end = rows["t_ns"] + rows["dur_ns"]
    at = np.clip(np.searchsorted(edges, end, side="right") - 1, 0, bins - 1)
    order = np.lexsort((rows["dur_ns"], at))
    lengths = rows["dur_ns"][order]
    count = np.bincount(at, minlength=bins)
    first = np.cumsum(count) - count
    p50, p99 = (_ranked(lengths, first, count, share) for share in (0.5, 0.99))
    return Bins(count, ns, p50, p99)


def _until(begin: NDArray[Any], end: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each edge the total time of some spans before the edge."""

    def before(times: NDArray[Any]) -> NDArray[np.int64]:
        times = np.sort(times)
        sums = np.concatenate([[0], np.cumsum(times)])
        n = np.searchsorted(times, edges)
        # Products beyond 2^63 wrap, and the sums wrap too. So their difference is right.
        return np.asarray(n * edges - sums[n])

    return before(begin) - before(end)


def _ranked(
    lengths: NDArray[Any], first: NDArray[Any], count: NDArray[Any], share: float
) -> NDArray[np.int64]:
    """Return for each bin a percentile of its lengths, which lie in order from `first` on."""
    if not len(lengths):
        return np.zeros(len(count), np.int64)
    rank = np.maximum(np.ceil(share * count).astype(np.int64) - 1, 0)
    return np.where(count > 0, lengths[np.minimum(first + rank, len(lengths) - 1)], 0)


# ---- changes ----


def _changes(what: Literal["wait", "hold"], rows: NDArray[Any]) -> list[Change]:
    """Return the clearest changes, at most `_CHANGES`."""
    rows = rows[np.argsort(rows["t_ns"], kind="stable")]
    ends = significant_ends(np.log2(np.maximum(rows["dur_ns"], 1)))
    return [
        Change(
            what, int(rows["t_ns"][at]), at - begin, end - at,
            int(np.median(rows["dur_ns"][begin:at])), int(np.median(rows["dur_ns"][at:end])),
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
    before = np.arange(_FEW, n - _FEW + 1)
    sums = np.cumsum(part)[before - 1]
    gap = (sums - before * part.mean()) / np.sqrt(before * (n - before) / n)
    at = int(before[np.argmax(np.abs(gap))])
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
