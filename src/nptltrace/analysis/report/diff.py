"""Compares runs before and after a change, by call site, call stack, object or thread.

If both sides ran the same build, call sites match by their offsets. Different builds match by
function, so you can compare a program with its next version. A function with call sites on the same
lines on both sides is compared line by line, any other function as a whole. Call stacks match if
all of their frames match.
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

# Rows with less than this share of a metric's total are not tested. Each test weakens all others.
_SHARE = 0.001
# Rounding may put the chance of a sure change this far above its bound.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one metric of one row.

    Attributes:
        before: The value in each run before; NaN if unknown.
        after: The value in each run after; NaN if unknown.
        chance: Probability of such a clear change in any row if nothing changed; None if there are
            too few runs, or if the share is too small.
        share: The value as a part of the total, on the side with the greater part.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    chance: float | None = None
    share: float = 1.0

    @property
    def known(self) -> bool:
        """Whether the values of all runs are known."""
        return not any(isnan(value) for value in (*self.before, *self.after))

    @property
    def mean_before(self) -> float:
        """Mean of the runs before."""
        return sum(self.before) / len(self.before)

    @property
    def mean_after(self) -> float:
        """Mean of the runs after."""
        return sum(self.after) / len(self.after)

    @property
    def difference(self) -> float:
        """Growth of the mean."""
        return self.mean_after - self.mean_before

    @property
    def percent(self) -> float | None:
        """Growth of the mean in per cent of the mean before; None if that is 0."""
        return 100 * self.difference / self.mean_before if self.mean_before else None

    @property
    def apart(self) -> bool:
        """Whether all values of one side are above all values of the other side."""
        return min(self.after) > max(self.before) or max(self.after) < min(self.before)


@dataclass(frozen=True, slots=True)
class Row:
    """The changes of a call site, call stack, object or thread, or of everything together.

    Attributes:
        label: Name of the row; for a stack, the innermost frame.
        callers: The other frames of a stack, as text.
        kind: Kind of object, or empty.
        changes: The change of each metric, by the metric's name.
    """

    label: str
    callers: tuple[str, ...]
    kind: str
    changes: dict[str, Change]

    @property
    def name(self) -> str:
        """Label and callers in one line."""
        return " < ".join((self.label, *self.callers))

    @property
    def weight(self) -> float:
        """Sum of the absolute changes of all times, in ns."""
        times = (self.changes[metric.name] for metric in METRICS if metric.is_time)
        return sum(abs(change.difference) for change in times if change.known)


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between the runs of two sides.

    Attributes:
        before: The runs before.
        after: The runs after.
        total: Everything together.
        rows: The rows, the greatest change first.
        confidence: The required confidence of a sure change, such as 0.95.
    """

    before: list[Run]
    after: list[Run]
    total: Row
    rows: list[Row]
    confidence: float

    @property
    def least_chance(self) -> float:
        """The smallest chance that this number of runs can give."""
        return least_chance(len(self.before), len(self.after))

    @property
    def enough(self) -> bool:
        """Whether there are enough runs for this confidence."""
        return self.least_chance <= 1 - self.confidence + _ROUNDING

    def verdict(self, change: Change) -> str:
        """Return `sure`, `chance`, or `unknown` for a change without a test."""
        if change.chance is None:
            return "unknown"
        return "sure" if change.chance <= 1 - self.confidence + _ROUNDING else "chance"


def compare(before: list[Run], after: list[Run], *, confidence: float = 0.95) -> Difference:
    """Return the changes from some runs to other runs.

    Args:
        before: One or more runs.
        after: One or more runs.
        confidence: The required confidence of a sure change, between 0 and 1.
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
    all_together, *changed = _rows([total, *rows.values()], len(before), confidence)
    changed.sort(key=lambda row: (-row.weight, row.name))
    return Difference(before, after, all_together, changed, confidence)


@dataclass(slots=True)
class _Sums:
    """The sums of a row: an array of shape (metrics, runs)."""

    labels: tuple[str, ...]
    kind: str
    runs: int
    values: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.zeros((len(METRICS), self.runs))


def _rows(everything: list[_Sums], n: int, confidence: float) -> list[Row]:
    """Return rows with their changes. All tests are one family.

    Args:
        everything: The sums of the rows, the total first.
        n: Number of runs before; these are the first columns.
        confidence: The required confidence of a sure change.
    """
    values = np.stack([sums.values for sums in everything])  # rows, metrics, runs
    means = np.stack([values[:, :, :n].mean(axis=2), values[:, :, n:].mean(axis=2)])
    whole = means[:, :1, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(np.where(whole > 0, means / whole, 0)).max(axis=0)
    chance = np.full(shares.shape, np.nan)
    m = values.shape[2] - n
    if least_chance(n, m) <= 1 - confidence + _ROUNDING:
        tested = (shares >= _SHARE) & ~np.isnan(values).any(axis=2)
        chance[tested] = chances(values[tested][:, :n], values[tested][:, n:])
    return [
        Row(
            sums.labels[0],
            sums.labels[1:],
            sums.kind,
            {
                metric.name: Change(
                    tuple(sums.values[at, :n].tolist()),
                    tuple(sums.values[at, n:].tolist()),
                    None if np.isnan(chance[row, at]) else float(chance[row, at]),
                    float(shares[row, at]),
                )
                for at, metric in enumerate(METRICS)
            },
        )
        for row, sums in enumerate(everything)
    ]


class _Matcher:
    """Matches the items of both sides."""

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
        """Return a key that matching items of all runs share, and the labels of the item."""
        if item.name or not item.frames:
            name = item.name or "unknown place"
            return ("name", item.kind, name), (name,)
        frames = [self._frame(item.kind, frame) for frame in item.frames]
        return tuple(key for key, _ in frames), tuple(label for _, label in frames)

    def _frame(self, kind: str, frame: Frame) -> tuple[Hashable, str]:
        """Return the key and the label of a frame."""
        place, module = frame.place, _module(frame)
        function, file, line = _function(place)
        if module in self._same_build or not function:
            return ("offset", kind, module, place.module_offset), str(place) or "unknown place"
        key = (module, function, kind)
        if key in self._same_lines:
            return ("line", *key, file, line), f"{function} ({file}:{line})"
        return ("function", *key), f"{function} ({file or place.module})"


def _function(place: Location) -> tuple[str, str, int]:
    """Return function, file and line in the source. Another build may inline differently."""
    for frame in place.inlined:
        if frame.function and not frame.foreign:
            return frame.function, frame.file, frame.line
    return place.function, place.file, place.line


def _module(frame: Frame) -> str:
    """Return the name of a module; empty for the program, which may have another name after."""
    return "" if frame.own else frame.place.module
