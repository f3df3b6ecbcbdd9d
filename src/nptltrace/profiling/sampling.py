"""Samples waits so that sums stay unbiased: one sample per so much waited time, with weights.

Sample points lie on the waited time like the events of a Poisson process: on average, one in each
`sample_ns`. A wait of d ns has at least one point with the probability p = 1 - exp(-d / sample_ns).
It then counts as 1 / p waits of d ns. So the expected sums are the true sums (Horvitz and Thompson,
"A Generalization of Sampling Without Replacement", 1952): long waits are nearly always counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Sampler"]


class Sampler:
    """Chooses waits.

    Args:
        sample_ns: The waited time for a sample on average; 0 = all waits.
        seed: Makes the choice repeatable; None for another choice each time.
    """

    def __init__(self, sample_ns: int, seed: int | None = None) -> None:
        self._sample_ns = sample_ns
        self._random = np.random.default_rng(seed)

    def weights(self, wait_ns: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weight of each wait: 0 if it is not chosen, else 1 or more."""
        if not self._sample_ns:
            return np.ones(len(wait_ns))
        chance = -np.expm1(-np.asarray(wait_ns, np.float64) / self._sample_ns)
        chosen = self._random.random(len(wait_ns)) < chance
        return np.divide(1.0, chance, out=np.zeros(len(wait_ns)), where=chosen)
