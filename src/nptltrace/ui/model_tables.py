"""The tables of the model. The viewer looks up threads, objects and call sites in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._dataclasses import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PathPieces", "Tables"]

_IDS = 1024


@dataclass(slots=True)
class Tables:
    """The tables of a model that has seen a traceset, or its beginning.

    Attributes:
        threads: Threads. The number of a thread is its row.
        objects: Objects, one element for each generation.
        sites: Call sites.
        edges: Lock orders: a thread held the first lock and asked for the second; no element 0.
        segments: The critical path, earliest piece first; empty until the end is reached.
        row_of: The row of each object, 0 for none.
        first: The first object of each row.
        events: Number of events by type.
    """

    threads: NDArray[Any]
    objects: NDArray[Any]
    sites: NDArray[Any]
    edges: NDArray[Any]
    segments: NDArray[Any]
    row_of: NDArray[Any]
    first: NDArray[Any]
    events: NDArray[Any]

    def rows(self, objects: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of objects by number; 0 for a number without an object."""
        count = len(self.row_of)
        if not count:
            return np.zeros(len(objects), self.row_of.dtype)
        return np.where(objects < count, self.row_of[np.minimum(objects, count - 1)], 0)

    def sound(self) -> bool:
        """Return whether all row numbers are in range. The tables may come from a bad file."""
        objects, rows, threads = len(self.objects), len(self.first), len(self.threads)
        inside = [
            (self.row_of, rows), (self.first, objects), (self.edges["held"], objects),
            (self.edges["wanted"], objects), (self.edges["guard"], objects),
            (self.edges["thread"], threads), (self.segments["thread"], threads),
            (self.segments["object"], objects), (self.segments["kind"], 4),
            (self.edges["held_site"], len(self.sites)),
            (self.edges["wanted_site"], len(self.sites)),
        ]  # fmt: skip
        return (
            len(self.row_of) == objects > 0
            and threads > 0
            and len(self.sites) > 0
            and len(self.events) == _IDS
            and all(not len(numbers) or int(numbers.max()) < count for numbers, count in inside)
        )


@dataclass(frozen=True, slots=True)
class PathPieces:
    """The pieces of a critical path, and the tables of the model that found the path.

    Attributes:
        segments: The pieces, earliest first. Their numbers are indexes of the tables below.
        threads: The threads of the model.
        objects: The objects of the model.
    """

    segments: NDArray[Any]
    threads: NDArray[Any]
    objects: NDArray[Any]
