"""What changed from some runs to others, by call site, call stack, object or thread.

Where both sides ran the same build, call sites are the same when their offsets are. Of builds that
differ, a function whose call sites stand on the same lines is compared line by line, and others as
a whole: so a program compares with its next version. Call stacks are the same when all of their
frames are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace.analysis.report.metrics import METRICS
from nptltrace.analysis.report.significance import chances, least_chance

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from nptltrace.analysis.report.measures import Frame, Item, Run
    from nptltrace.trace.symbols.location import Location

__all__ = ["Change", "Difference", "Row", "compare"]

# What makes up less than this of everything in a metric is not tested: it would only blur the rest.
_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Change:
    """How one metric of one row changed.

    Attributes:
        before: Its value in each run; not a number where it is not known.
        after: Likewise.
        chance: How probable as clear a change were anywhere if nothing had changed; None where
            there are too few runs to know, or where there is too little of it.
        share: Which part of the total it is, on the side where that is greater.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    chance: float | None = None
    share: float = 1.0

    @property
    def known(self) -> bool:
        """Whether it is known of all runs."""
        return not any(isnan(value) for value in (*self.before, *self.after))

    @property
    def mean_before(self) -> float:
        """Mean before."""
        return sum(self.before) / len(self.before)

    @property
    def mean_after(self) -> float:
        """Mean after."""
        return sum(self.after) / len(self.after)

    @property
    def difference(self) -> float:
        """By how much the mean grew."""
        return self.mean_after - self.mean_before

    @property
    def percent(self) -> float | None:
        """The same in per cent of what it was; None where there was nothing."""
        return 100 * self.difference / self.mean_before if self.mean_before else None

    @property
    def apart(self) -> bool:
        """Whether all runs of one side are above all of the other."""
        return min(self.after) > max(self.before) or max(self.after) < min(self.before)


@dataclass(frozen=True, slots=True)
class Row:
    """A call site, call stack, object, thread, or everything.

    Attributes:
        label: How to call it; of a stack, the innermost frame.
        callers: The other frames of a stack, as text.
        kind: Kind of object, or empty.
        changes: By name of the metric.
    """

    label: str
    callers: tuple[str, ...]
    kind: str
    changes: dict[str, Change]

    @property
    def name(self) -> str:
        """All of it in one line."""
        return " < ".join((self.label, *self.callers))

    @property
    def weight(self) -> float:
        """By how many ns it changed altogether."""
        times = (self.changes[metric.name] for metric in METRICS if metric.is_time)
        return sum(abs(change.difference) for change in times if change.known)


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between the runs of two sides.

    Attributes:
        before: The runs before.
        after: The runs after.
        total: Everything together.
        rows: Those that changed most first.
        confidence: How sure a change must be, as 0.95.
    """

    before: list[Run]
    after: list[Run]
    total: Row
    rows: list[Row]
    confidence: float

    @property
    def least_chance(self) -> float:
        """The smallest chance that so many runs can give."""
        return least_chance(len(self.before), len(self.after))

    @property
    def enough(self) -> bool:
        """Whether there are runs enough to be that sure."""
        return self.least_chance <= 1 - self.confidence + 1e-9

    def verdict(self, change: Change) -> str:
        """Return `sure`, `chance`, or `unknown` with too few runs or too little to test."""
        if change.chance is None:
            return "unknown"
        return "sure" if change.chance <= 1 - self.confidence + 1e-9 else "chance"


def compare(before: list[Run], after: list[Run], *, confidence: float = 0.95) -> Difference:
    """Return what changed.

    Args:
        before: One or more runs.
        after: One or more runs.
        confidence: How sure a change must be to count, between 0 and 1.
    """
    matcher = _Matcher(before, after)
    rows: dict[Hashable, _Sums] = {}
    runs = [*before, *after]
    for at, run in enumerate(runs):
        for item in run.items:
            key, labels = matcher.key(item)
            sums = rows.setdefault(key, _Sums(labels, item.kind, len(runs)))
            sums.values[:, at] += item.values
    total = _Sums(("total",), "", len(runs))
    total.values[:] = np.column_stack([run.total for run in runs])
    everything = [total, *rows.values()]
    found = _rows(everything, len(before), confidence)
    order = sorted(found[1:], key=lambda row: (-row.weight, row.name))
    return Difference(before, after, found[0], order, confidence)


@dataclass(slots=True)
class _Sums:
    """A row while it is added up: metrics by runs."""

    labels: tuple[str, ...]
    kind: str
    runs: int
    values: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.zeros((len(METRICS), self.runs))


def _rows(everything: list[_Sums], n: int, confidence: float) -> list[Row]:
    """Return rows with changes, all of them tested as one family."""
    values = np.stack([sums.values for sums in everything])  # rows, metrics, runs
    means = np.stack([values[:, :, :n].mean(axis=2), values[:, :, n:].mean(axis=2)])
    whole = means[:, :1, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(np.where(whole > 0, means / whole, 0)).max(axis=0)
    known = np.full(shares.shape, np.nan)
    m = values.shape[2] - n
    if least_chance(n, m) <= 1 - confidence + 1e-9:
        tested = (shares >= _SHARE) & ~np.isnan(values).any(axis=2)
        known[tested] = chances(values[tested][:, :n], values[tested][:, n:])
    return [
        Row(
            sums.labels[0],
            sums.labels[1:],
            sums.kind,
            {
                metric.name: Change(
                    tuple(sums.values[at, :n].tolist()),
                    tuple(sums.values[at, n:].tolist()),
                    None if np.isnan(chance[at]) else float(chance[at]),
                    float(share[at]),
                )
                for at, metric in enumerate(METRICS)
            },
        )
        for sums, chance, share in zip(everything, known, shares, strict=True)
    ]


class _Matcher:
    """Finds out what is the same on both sides."""

    def __init__(self, before: Sequence[Run], after: Sequence[Run]) -> None:
        builds: dict[str, tuple[set[str], set[str]]] = {}
        lines: dict[Hashable, tuple[set[Any], set[Any]]] = {}
        for side, runs in enumerate((before, after)):
            for item in (item for run in runs for item in run.items if not item.name):
                for frame in item.frames:
                    place, module = frame.place, _module(frame)
                    builds.setdefault(module, (set(), set()))[side].add(place.build_id)
                    function, file, line = _function(place)
                    lines.setdefault((module, function, item.kind), (set(), set()))[side].add(
                        (file, line)
                    )
        self._same_build = {
            module
            for module, (a, b) in builds.items()
            if a | b and len(a | b) == 1 and "" not in a | b
        }
        self._same_lines = {key for key, (a, b) in lines.items() if a == b and ("", 0) not in a}

    def key(self, item: Item) -> tuple[Hashable, tuple[str, ...]]:
        """Return what is the same for the same thing in another run, and how to call it."""
        if item.name or not item.frames:
            name = item.name or "unknown place"
            return ("name", item.kind, name), (name,)
        found = [self._frame(item.kind, frame) for frame in item.frames]
        return tuple(key for key, _ in found), tuple(label for _, label in found)

    def _frame(self, kind: str, frame: Frame) -> tuple[Hashable, str]:
        """Return the same of a frame."""
        place, module = frame.place, _module(frame)
        function, file, line = _function(place)
        if module in self._same_build or not function:
            return ("offset", kind, module, place.module_offset), str(place) or "unknown place"
        key = (module, function, kind)
        if key in self._same_lines:
            return ("line", *key, file, line), f"{function} ({file}:{line})"
        return ("function", *key), f"{function} ({file or place.module})"


def _function(place: Location) -> tuple[str, str, int]:
    """Return function, file and line, as they stand in the source: the compiler may inline anew."""
    for frame in place.inlined:
        if frame.function and not frame.foreign:
            return frame.function, frame.file, frame.line
    return place.function, place.file, place.line


def _module(frame: Frame) -> str:
    """Return the name of a module; the program itself may be called otherwise on the other side."""
    return "" if frame.own else frame.place.module
