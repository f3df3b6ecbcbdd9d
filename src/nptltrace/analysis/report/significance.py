"""Separates changes from chance by several runs before and after.

A change counts only if two tests agree:

- A permutation test over all rows at once (P. H. Westfall, S. S. Young, "Resampling-Based Multiple
  Testing", 1993). It assumes no distribution. It does assume that without a change the runs of
  both sides are exchangeable, so it mistakes a change of the spread for a change of the mean.
- Welch's t-test of each row (B. L. Welch, Biometrika 34, 1947), corrected for the number of rows
  and comparisons (S. Holm, Scandinavian Journal of Statistics 6, 1979). It allows a different
  spread before and after.

So many rows, or many pairs of successive releases, do not produce false changes. The price: a few
runs cannot give any certainty, however large the difference.
"""

from __future__ import annotations

from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["chances", "chances_of_all", "least_chance"]

_WAYS = 20_000  # if there are more permutations, that many are sampled
_AT_ONCE = 512
# Added to the spread, as a share of the mean. Otherwise a row with nearly equal runs by chance
# would show a clearer difference than every real change.
_NEGLIGIBLE = 0.01
# With fewer runs on a side, the spread of the side is hardly known.
_SPREAD_KNOWN = 4
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def least_chance(before: int, after: int) -> float:
    """Return the smallest probability that these numbers of runs can give."""
    if min(before, after) == 1:
        return 1.0
    # With equal numbers of runs, a swap of all labels gives the same difference.
    return max((2 if before == after else 1) / comb(before + after, before), 1 / _WAYS)


def chances(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each row the probability of such a clear difference if nothing changed.

    Args:
        before: Values of shape (rows, runs before); no NaN.
        after: Values of shape (rows, runs after).

    Returns:
        A probability for each row, corrected for the number of rows.
    """
    return chances_of_all([(before, after)])[0]


def chances_of_all(
    comparisons: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> list[NDArray[np.float64]]:
    """Return `chances` of several comparisons, corrected for the number of comparisons too.

    Args:
        comparisons: Pairs (before, after), each as `chances` takes them.

    Returns:
        An array for each comparison, with a probability for each row.
    """
    if not comparisons:
        return []
    separate = np.concatenate([_welch(before, after) for before, after in comparisons])
    ends = np.cumsum([len(before) for before, _ in comparisons])[:-1]
    corrected = np.split(_holm(separate), ends)
    return [
        np.maximum(_permutation(before, after), welch)
        for (before, after), welch in zip(comparisons, corrected, strict=True)
    ]


# ---- a different spread on both sides ----


def _welch(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two-sided probability of each row by Welch's t-test."""
    n, m = before.shape[1], after.shape[1]
    least = min(n, m) - 1
    if least < 1:
        return np.ones(len(before))
    of_before, of_after = before.var(axis=1, ddof=1) / n, after.var(axis=1, ddof=1) / m
    difference = np.abs(after.mean(axis=1) - before.mean(axis=1))
    squared = of_before + of_after
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(difference > 0, difference / np.sqrt(squared), 0.0)
        freedom = squared**2 / (of_before**2 / (n - 1) + of_after**2 / (m - 1))
    freedom = np.nan_to_num(freedom, nan=n + m - 2.0)
    if least + 1 < _SPREAD_KNOWN:
        freedom = np.full(len(t), float(least))
    return _student(t, np.maximum(freedom, least))


def _student(t: NDArray[np.float64], freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that |T| exceeds `t`, with `freedom` degrees of freedom.

    With t = sqrt(freedom) tan(x), the density of Student's distribution is a power of cos(x).
    """

    def integral(begin: NDArray[np.float64]) -> NDArray[np.float64]:
        width = (np.pi / 2 - begin) / 2
        x = begin[:, np.newaxis] + width[:, np.newaxis] * (_NODES + 1)
        return np.asarray(np.cos(x) ** (freedom[:, np.newaxis] - 1) @ _WEIGHTS * width)

    return np.asarray(integral(np.arctan(t / np.sqrt(freedom))) / integral(np.zeros(len(t))))


def _holm(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities, corrected for their number."""
    order = np.argsort(chance)
    remaining = np.arange(len(chance), 0, -1)
    corrected = np.empty(len(chance))
    corrected[order] = np.minimum(np.maximum.accumulate(chance[order] * remaining), 1)
    return corrected


# ---- no assumption about the distribution ----


def _permutation(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each row how often permuted labels give such a clear difference in any row."""
    n, m = before.shape[1], after.shape[1]
    rows = np.concatenate([before, after], axis=1)
    if min(n, m) < 2 or not len(rows):  # noqa: PLR2004 -- one run says nothing of its spread
        return np.ones(len(rows))
    scale = np.abs(rows).mean(axis=1)
    rows = rows / np.where(scale > 0, scale, 1)[:, np.newaxis]
    real = _clearness(rows, np.arange(n + m)[np.newaxis, :] < n)[:, 0]
    as_clear = np.zeros(len(rows))
    ways = 0
    for labels in _labels(n, m):
        most = _clearness(rows, labels).max(axis=0)
        as_clear += (most[np.newaxis, :] >= real[:, np.newaxis] * (1 - 1e-9)).sum(axis=1)
        ways += len(labels)
    return np.asarray(as_clear / ways)


def _labels(n: int, m: int) -> list[NDArray[np.bool_]]:
    """Return batches of ways to label `n` of the runs as "before", the real way first."""
    if comb(n + m, n) <= _WAYS:
        chosen = np.array(list(combinations(range(n + m), n)))
    else:
        rng = np.random.default_rng(0)  # the same result every time
        drawn = (rng.permutation(n + m)[:n] for _ in range(_WAYS - 1))
        chosen = np.array([np.arange(n), *islice(drawn, _WAYS)])
    labels = np.zeros((len(chosen), n + m), np.bool_)
    np.put_along_axis(labels, chosen, values=True, axis=1)
    return [labels[start : start + _AT_ONCE] for start in range(0, len(labels), _AT_ONCE)]


def _clearness(rows: NDArray[np.float64], labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for each row and way the difference of the means, in standard errors."""
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
