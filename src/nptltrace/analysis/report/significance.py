"""Separates changes from chance when something was run several times.

The test is the permutation test of Westfall and Young: if nothing had changed, the runs could as
well have been labelled "before" and "after" in any other way. A change counts when hardly any of
these ways shows a difference as clear as the real one in *any* row: so looking at many rows does
not make up changes. It assumes no distribution, and is exact; its price is that a few runs cannot
give any certainty, however large the difference.
"""

from __future__ import annotations

from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["chances", "least_chance"]

_WAYS = 20_000  # more ways than these are sampled
_AT_ONCE = 512
# Differences far below this share of a value are not looked for: a row in which all runs happen to
# be nearly equal would else outshine every real change.
_NEGLIGIBLE = 0.01


def least_chance(before: int, after: int) -> float:
    """Return the smallest probability that so many runs can give."""
    if min(before, after) == 1:
        return 1.0
    # Of as many runs on both sides, the labels may all be swapped and give the same difference.
    return max((2 if before == after else 1) / comb(before + after, before), 1 / _WAYS)


def chances(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return of each row how probable as clear a difference were anywhere, if nothing had changed.

    Args:
        before: A row for each quantity, a column for each run.
        after: Likewise.
    """
    n, m = before.shape[1], after.shape[1]
    rows = np.concatenate([before, after], axis=1)
    if min(n, m) < 2 or not len(rows):  # noqa: PLR2004 -- one run says nothing of its spread
        return np.ones(len(rows))
    scale = np.abs(rows).mean(axis=1)
    rows = rows / np.where(scale > 0, scale, 1)[:, np.newaxis]
    found = _clearness(rows, np.arange(n + m)[np.newaxis, :] < n)[:, 0]
    as_clear = np.zeros(len(rows))
    ways = 0
    for labels in _labels(n, m):
        most = _clearness(rows, labels).max(axis=0)
        as_clear += (most[np.newaxis, :] >= found[:, np.newaxis] * (1 - 1e-9)).sum(axis=1)
        ways += len(labels)
    return np.asarray(as_clear / ways)


def _labels(n: int, m: int) -> list[NDArray[np.bool_]]:
    """Return the ways to call `n` of the runs "before", the real one first; some at a time."""
    if comb(n + m, n) <= _WAYS:
        chosen = np.array(list(combinations(range(n + m), n)))
    else:
        rng = np.random.default_rng(0)  # the same answer every time
        drawn = (rng.permutation(n + m)[:n] for _ in range(_WAYS - 1))
        chosen = np.array([np.arange(n), *islice(drawn, _WAYS)])
    labels = np.zeros((len(chosen), n + m), np.bool_)
    np.put_along_axis(labels, chosen, values=True, axis=1)
    return [labels[start : start + _AT_ONCE] for start in range(0, len(labels), _AT_ONCE)]


def _clearness(rows: NDArray[np.float64], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for each row and way the difference of the means, in units of what it might be off."""
    is_before = labels.T.astype(np.float64)
    sums = [rows @ part for part in (is_before, 1 - is_before)]
    squares = [rows**2 @ part for part in (is_before, 1 - is_before)]
    spread = np.full(sums[0].shape, _NEGLIGIBLE**2)
    for count, total, square in zip(
        (is_before[:, 0].sum(), (1 - is_before[:, 0]).sum()), sums, squares, strict=True
    ):
        variance = np.maximum(square - total**2 / count, 0) / (count - 1)
        spread += variance / count
    n = is_before[:, 0].sum()
    difference = sums[1] / (labels.shape[1] - n) - sums[0] / n
    return np.asarray(np.abs(difference) / np.sqrt(spread))
