"""Locks over time: how much was waited and held in each part of a range, and when that changed.

What reaches over the edge of a bin counts in both with the parts inside. The number of waits and
holds, and the ranks of their lengths, count each of them once: in the bin in which its part of the
range ends. So numbers and times add up to those of a report on the range. A change is a moment from
which on waits or holds are of another length than before, by more than their scatter; it is looked
for in those that lie in the range as a whole.
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
# A change is one of the median to so many times as much, or as little, ...
_TIMES = 1.5
# ... with at least so many on each side, ...
_FEW = 30
# ... whose logarithms differ by so many standard errors. The place of a change is chosen among
# many, and the correlation of successive lengths is an estimate itself, so the bound is high.
_ERRORS = 8.0
_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A moment from which on waits or holds of a lock had another length.

    Attributes:
        what: Of what.
        t_ns: When the first of them began.
        before: How many there were since the change before, or since the range begins.
        after: How many there are until the next change, or until the range ends.
        before_ns: The median of the former.
        after_ns: The median of the latter.
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
        count: How many end in each. Those that go on behind the range count in the last.
        ns: How long they lasted in each, added up.
        p50_ns: The median length of these; 0 where there is none.
        p99_ns: The 99th percentile, likewise.
    """

    count: NDArray[np.int64]
    ns: NDArray[np.int64]
    p50_ns: NDArray[np.int64]
    p99_ns: NDArray[np.int64]


class Place(NamedTuple):
    """What the objects of a lock have in common: all that were initialized at one place.

    Attributes:
        process: Number of the process.
        address: Where they lay, one after another.
        kind: Their kind, as the model has it.
        init_site: Where they were initialized; 0 if that is not known.
    """

    process: int
    address: int
    kind: int
    init_site: int


@dataclass(frozen=True, slots=True)
class LockOverTime:
    """A lock: all objects of a place.

    Attributes:
        place: The place.
        waits: Contended waits.
        holds: Holds.
        changes: The changes of both, in the order of time.
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
        locks: Which ones.
        edges: The ends of the bins in ns, one more than there are bins.
        step: Called back now and then with the time up to which the trace was read.

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
            objects, sites = model.table("objects"), model.table("sites")["address"]
            columns = [objects[name].tolist() for name in ("process", "address", "kind")]
            inits = sites[objects["init_site"]].tolist()
            for number, place in enumerate(zip(*columns, inits, strict=True)):
                if place in numbers:
                    numbers[Place(*place)].append(number)
    waits, holds = (np.concatenate(some) for some in parts.values())
    bounds = window.of(source)
    for rows in (waits, holds):
        rows["whole"] &= _lies_in(rows, bounds)
    return [
        _lock(
            lock,
            waits[np.isin(waits["object"], own)],
            holds[np.isin(holds["object"], own)],
            edges,
        )
        for lock, own in numbers.items()
    ]


def _lies_in(rows: NDArray[Any], bounds: Window) -> NDArray[np.bool_]:
    """Return which of some waits or holds a window has not cut off."""
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
    changes = [change for own in _generations(compared) for change in _changes("wait", own)]
    changes += [change for own in _generations(holds) for change in _changes("hold", own)]
    changes.sort(key=lambda one: one.t_ns)
    return LockOverTime(place, _bins(waits, edges), _bins(holds, edges), changes)


def _rounds(waits: NDArray[Any]) -> NDArray[Any]:
    """Return one wait for each round of a barrier, which is that of the thread that came first.

    The later a thread comes, the shorter it waits: within a round lengths mean nothing.
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
    """Yield the whole waits or holds of each object: what lay at the address before is another.

    Those of which there are too few for a change are left out.
    """
    rows = rows[rows["whole"]]
    rows = rows[np.argsort(rows["object"], kind="stable")]
    own = np.split(rows, np.flatnonzero(np.diff(rows["object"])) + 1)
    yield from (one for one in own if len(one) >= 2 * _FEW)


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
    """Return how long stretches of time lasted in all before each edge."""

    def before(times: NDArray[Any]) -> NDArray[np.int64]:
        times = np.sort(times)
        sums = np.concatenate([[0], np.cumsum(times)])
        n = np.searchsorted(times, edges)
        # Products may be beyond 2^63 and wrap; so do the sums, and the difference is right.
        return np.asarray(n * edges - sums[n])

    return before(begin) - before(end)


def _ranked(
    lengths: NDArray[Any], first: NDArray[Any], count: NDArray[Any], share: float
) -> NDArray[np.int64]:
    """Return the length of this rank in each bin."""
    if not len(lengths):
        return np.zeros(len(count), np.int64)
    rank = np.maximum(np.ceil(share * count).astype(np.int64) - 1, 0)
    return np.where(count > 0, lengths[np.minimum(first + rank, len(lengths) - 1)], 0)


# ---- changes ----


def _changes(what: Literal["wait", "hold"], rows: NDArray[Any]) -> list[Change]:
    """Return the changes, the clearest of them where there are many."""
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
    """Return where the stretches between significant changes end, with 0 in front.

    Candidates are chosen as if the lengths were independent. Their correlation is known only when
    all levels are taken out, so the candidates are judged afterwards, the weakest first.

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
    """Return by how many standard errors a stretch differs before and after a place, and the place.

    The place is where the difference is clearest; 0 errors mean that there is no change.
    """
    part = logs[begin:end]
    n = len(part)
    if n < 2 * _FEW:  # beside another change
        return 0.0, 0
    before = np.arange(_FEW, n - _FEW + 1)
    sums = np.cumsum(part)[before - 1]
    gap = (sums - before * part.mean()) / np.sqrt(before * (n - before) / n)
    at = int(before[np.argmax(np.abs(gap))])
    return _errors(part[:at], part[at:]), begin + at


def _errors(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return by how many standard errors two stretches differ; 0 if by less than `_TIMES`."""
    if abs(np.median(right) - np.median(left)) < np.log2(_TIMES):
        return 0.0
    n, m = len(left), len(right)
    scatter = np.sqrt((left.var() * n + right.var() * m) / (n + m))
    gap = abs(right.mean() - left.mean()) * np.sqrt(n * m / (n + m))
    return float(gap / max(float(scatter), 1e-9))


def _errors_at(logs: NDArray[np.float64], ends: list[int]) -> Iterator[tuple[float, int]]:
    """Yield each change with its standard errors, for lengths that are correlated."""
    stretches = [logs[begin:end] for begin, end in pairwise(ends)]
    time = _correlation_time(np.concatenate([part - part.mean() for part in stretches]))
    for (left, right), at in zip(pairwise(stretches), ends[1:-1], strict=True):
        yield _errors(left, right) / np.sqrt(time), at


def _correlation_time(residuals: NDArray[np.float64]) -> float:
    """Return how many successive lengths say as much about their mean as one independent length.

    It is the larger of two estimates: by the correlation of neighbours, as if the lengths were an
    autoregressive process of order 1, and by the variance of the means of batches, which sees
    longer phases as well (G. S. Fishman, "Discrete-Event Simulation", 2001, chapter 6).

    Args:
        residuals: Differences from the mean, in the order of time.

    Returns:
        1.0 where the lengths are independent, more where they are not.
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
        1.0,
        (1 + neighbours) / (1 - neighbours),
        size * float(np.mean(batches**2)) / variance,
    )
