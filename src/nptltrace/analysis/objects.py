"""Objects: names of their kinds, which are counted together, and how many threads use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nptltrace._binding import libptttrack_sums
from nptltrace._binding.headers.lock_function import PTT_LOCK_TYPE_GIVEN
from nptltrace._dataclasses import dataclass
from nptltrace.catalog import DOMAINS, FUTEX_KINDS, LOCK_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from nptltrace.trace.symbols.lookup import Symbols

__all__ = ["NO_LOCKS", "Objects", "Users", "is_lock", "kind_of", "nothing_contended"]

_KIND_BITS = 8
_USES_OBJECT = 1
# Kinds of objects that no thread holds as a lock.
NO_LOCKS = frozenset({"cond", "gcond", "barrier", "semaphore", *FUTEX_KINDS})


def kind_of(kind: int, flags: int, user_types: Sequence[str]) -> str:
    """Return what to call an object.

    Args:
        kind: Its domain.
        flags: Its flags, as the model has them.
        user_types: The names of the user's own types: `Traceset.lock_types` of its process.
    """
    number = flags >> libptttrack_sums.TYPE_SHIFT
    if kind == DOMAINS["futex"] or (kind == DOMAINS["sem"] and number):
        return FUTEX_KINDS[number] if number < len(FUTEX_KINDS) else FUTEX_KINDS[0]
    if kind != DOMAINS["lll"] and 0 < number <= len(LOCK_TYPES):
        return LOCK_TYPES[number - 1]
    if kind != DOMAINS["lll"] and 0 <= number - PTT_LOCK_TYPE_GIVEN < len(user_types):
        return user_types[number - PTT_LOCK_TYPE_GIVEN]
    return libptttrack_sums.KINDS.get(kind, "object")


def is_lock(kind: str) -> bool:
    """Return whether objects of a kind are locks: a thread takes them and gives them back."""
    return kind not in NO_LOCKS and kind != "thread"


def nothing_contended(*, given_up: bool, is_whole: bool) -> str:
    """Return the sentence for a report without contention.

    Args:
        given_up: A thread gave up a wait for a lock.
        is_whole: The class of all waits is known.
    """
    if given_up:
        return "each wait for a lock was given up"
    return "nothing was contended" + ("" if is_whole else " in what is covered")


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects, column by column, in the order of the model.

    Attributes:
        process: Number of the process of each.
        address: Its address.
        kind: Its kind, as a number.
        init: The call that initialized it; 0 where no event says so.
        first_ns: Its first use.
    """

    process: NDArray[Any]
    address: NDArray[Any]
    kind: NDArray[Any]
    init: NDArray[Any]
    first_ns: NDArray[Any]

    def first_alike(
        self, is_named: Callable[[int], bool], symbols: Symbols | None
    ) -> NDArray[np.int64]:
        """Return the index of the first object with which each object is counted.

        The interpreter of Python gives the address of a lock to another lock at once. Objects
        without a name that were initialized at several places are told apart by these.

        Args:
            is_named: Whether the object at a place has a name.
            symbols: Names the locks of Python.
        """
        apart = self.kind.astype(np.int64)
        self._by_initialization(is_named, apart)
        locks = symbols.python_locks() if symbols is not None else None
        semaphores = np.flatnonzero(self.kind == DOMAINS["sem"])
        if locks is not None and len(semaphores):
            names = locks.same(
                self.process[semaphores], self.address[semaphores], self.first_ns[semaphores]
            )
            apart[semaphores] += names << _KIND_BITS
        keys = np.stack([self.address, self.process.astype(np.uint64), apart.astype(np.uint64)])
        _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        return np.asarray(first[group.reshape(-1)])

    def _by_initialization(self, is_named: Callable[[int], bool], apart: NDArray[np.int64]) -> None:
        """Tell objects without a name apart by where they were initialized."""
        place = (self.kind, self.address, self.process)
        order = np.lexsort([self.init, *place])
        same = np.ones(len(order), bool)
        same[:1] = False
        for column in place:
            same[1:] &= column[order[1:]] == column[order[:-1]]
        several = same.copy()
        several[1:] &= self.init[order[1:]] != self.init[order[:-1]]
        group = np.cumsum(~same)
        _, numbers = np.unique(self.init, return_inverse=True)
        numbers = np.where(self.init != 0, numbers.reshape(-1) + 1, 0)
        for number in np.unique(group[several]).tolist():
            members = order[group == number]
            if not is_named(int(members[0])):
                members = members[np.argsort(self.first_ns[members], kind="stable")]
                places = numbers[members]
                # An object that no call made is as the object before it.
                known = np.maximum.accumulate(np.where(places > 0, np.arange(len(places)), 0))
                apart[members] += places[known] << _KIND_BITS


@dataclass(frozen=True, slots=True)
class Users:
    """Which threads use which objects.

    Attributes:
        bits: A bit for each of the first threads, by object.
        objects: Numbers of objects that later threads use.
        threads: The later thread that uses each of them.
    """

    bits: NDArray[np.uint64]
    objects: NDArray[Any]
    threads: NDArray[Any]

    @classmethod
    def of(cls, objects: NDArray[Any], pairs: NDArray[Any]) -> Users:
        """Return what a model knows.

        Args:
            objects: Its table of objects.
            pairs: Its table of pairs.
        """
        used = pairs[pairs["used"] & _USES_OBJECT != 0]
        return cls(objects["users"], used["object"], used["thread"])

    def later(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the later threads that use some objects, and the end of each object's threads.

        Args:
            numbers: Numbers of objects, in their order.
        """
        order = np.argsort(self.objects, kind="stable")
        order = order[np.isin(self.objects[order], numbers)]
        return self.threads[order], np.searchsorted(self.objects[order], numbers, side="right")

    def count(self, numbers: NDArray[Any], group: NDArray[Any], count: int) -> NDArray[np.uint32]:
        """Return how many threads use any of the objects of each group.

        Args:
            numbers: Numbers of objects.
            group: The group of each.
            count: How many groups there are.
        """
        bits = np.zeros(count, np.uint64)
        np.bitwise_or.at(bits, group, self.bits[numbers])
        group_of = np.full(len(self.bits), -1, np.int64)
        group_of[numbers] = group
        of = group_of[self.objects]
        later = np.unique(np.stack([of, self.threads.astype(np.int64)])[:, of >= 0], axis=1)
        found = np.unpackbits(bits.view(np.uint8)).reshape(count, 64).sum(axis=1, dtype=np.uint32)
        return np.asarray(found + np.bincount(later[0], minlength=count).astype(np.uint32))
