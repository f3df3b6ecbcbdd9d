"""Chosen objects: all objects at an address, or the object that was there at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace._binding.libpttread import ANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BEGIN", "END", "Chosen", "among", "common"]

BEGIN, END = -(2**63), 2**63 - 1


class Chosen(NamedTuple):
    """The objects at an address in a span of time. Times are in ns since the traceset's start.

    Attributes:
        process: Number of the process; `ANY` for every process.
        address: The address.
        kind: Kind of the object, as a number of `DOMAINS`; `ANY` for every kind.
        begin_ns: Begin of the span.
        end_ns: First moment behind the span.
    """

    process: int
    address: int
    kind: int = ANY
    begin_ns: int = BEGIN
    end_ns: int = END

    @property
    def is_open(self) -> bool:
        """Whether the next object at the address, which is not known yet, ends the span."""
        return self.kind != ANY and self.end_ns == END

    def common(self, other: Chosen) -> Chosen | None:
        """Return the objects that both choose; None for no object."""
        both = Chosen(
            min(self.process, other.process), self.address, min(self.kind, other.kind),
            max(self.begin_ns, other.begin_ns), min(self.end_ns, other.end_ns),
        )  # fmt: skip
        # ANY is greater than all numbers.
        same = {self.process, other.process, ANY} == {both.process, ANY}
        same &= {self.kind, other.kind, ANY} == {both.kind, ANY}
        same &= self.address == other.address and both.begin_ns < both.end_ns
        return both if same else None


def common(some: Iterable[Chosen], others: Iterable[Chosen]) -> set[Chosen]:
    """Return the objects that two choices have in common."""
    at: dict[int, list[Chosen]] = {}
    for choice in others:
        at.setdefault(choice.address, []).append(choice)
    both = (choice.common(other) for choice in some for other in at.get(choice.address, ()))
    return {choice for choice in both if choice is not None}


def among(
    chosen: Sequence[Chosen] | None,
    process: NDArray[Any],
    address: NDArray[Any],
    at_ns: NDArray[Any],
    kind: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """Return which objects are chosen, with shape (objects,).

    Args:
        chosen: The choice; None for all.
        process: By object, the number of the process.
        address: By object, the address.
        at_ns: By object, a time in its life, in ns since the traceset's start.
        kind: By object, its kind as a number of `DOMAINS`; None if unknown.
    """
    import numpy as np  # not for a recording

    if chosen is None:
        return np.ones(len(address), np.bool_)
    result = np.zeros(len(address), np.bool_)
    timeless: dict[int, list[int]] = {}
    spans: list[Chosen] = []
    for choice in chosen:
        if choice == Chosen(choice.process, choice.address):
            timeless.setdefault(choice.process, []).append(choice.address)
        else:
            spans.append(choice)
    for owner, wanted in timeless.items():
        match = np.isin(address, np.array(wanted, np.uint64))
        result |= match if owner == ANY else match & (process == owner)
    rows = np.flatnonzero(np.isin(address, np.array([span.address for span in spans], np.uint64)))
    for span in spans:
        match = (address[rows] == np.uint64(span.address)) & (at_ns[rows] >= span.begin_ns)
        match &= at_ns[rows] < span.end_ns
        if span.process != ANY:
            match &= process[rows] == span.process
        if kind is not None and span.kind != ANY:
            match &= kind[rows] == span.kind
        result[rows] |= match
    return result
