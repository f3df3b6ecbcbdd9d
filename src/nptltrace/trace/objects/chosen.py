"""Chosen objects: all that lay at an address, or the objects of a part of the time."""

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
    """The objects at an address in a part of the time.

    Attributes:
        process: Number of the process; `ANY` for every process.
        address: The address.
        kind: Kind of the object, as a number of `DOMAINS`; `ANY` for every kind.
        begin_ns: When the part of the time begins.
        end_ns: The first moment behind it.
    """

    process: int
    address: int
    kind: int = ANY
    begin_ns: int = BEGIN
    end_ns: int = END

    @property
    def is_open(self) -> bool:
        """Whether an object that follows at the address will end the part of the time."""
        return self.kind != ANY and self.end_ns == END

    def common(self, other: Chosen) -> Chosen | None:
        """Return what both choose, or None for nothing."""
        found = Chosen(
            min(self.process, other.process), self.address, min(self.kind, other.kind),
            max(self.begin_ns, other.begin_ns), min(self.end_ns, other.end_ns),
        )  # fmt: skip
        # ANY is above all numbers.
        same = {self.process, other.process, ANY} == {found.process, ANY}
        same &= {self.kind, other.kind, ANY} == {found.kind, ANY}
        same &= self.address == other.address and found.begin_ns < found.end_ns
        return found if same else None


def common(some: Iterable[Chosen], others: Iterable[Chosen]) -> set[Chosen]:
    """Return the objects that two choices have in common."""
    at: dict[int, list[Chosen]] = {}
    for one in others:
        at.setdefault(one.address, []).append(one)
    both = (one.common(other) for one in some for other in at.get(one.address, ()))
    return {one for one in both if one is not None}


def among(
    chosen: Sequence[Chosen] | None,
    process: NDArray[Any],
    address: NDArray[Any],
    at_ns: NDArray[Any],
    kind: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """Return which of some objects are chosen.

    Args:
        chosen: The choice; None for all.
        process: Number of the process of each.
        address: Its address.
        at_ns: A time in its life, in ns since the traceset's start.
        kind: Its kind; None where it is not known.
    """
    import numpy as np  # not for a recording

    if chosen is None:
        return np.ones(len(address), np.bool_)
    found = np.zeros(len(address), np.bool_)
    whole: dict[int, list[int]] = {}
    spans: list[Chosen] = []
    for one in chosen:
        if one == Chosen(one.process, one.address):
            whole.setdefault(one.process, []).append(one.address)
        else:
            spans.append(one)
    for owner, wanted in whole.items():
        these = np.isin(address, np.array(wanted, np.uint64))
        found |= these if owner == ANY else these & (process == owner)
    near = np.flatnonzero(np.isin(address, np.array([span.address for span in spans], np.uint64)))
    for one in spans:
        these = (address[near] == np.uint64(one.address)) & (at_ns[near] >= one.begin_ns)
        these &= at_ns[near] < one.end_ns
        if one.process != ANY:
            these &= process[near] == one.process
        if kind is not None and one.kind != ANY:
            these &= kind[near] == one.kind
        found[near] |= these
    return found
