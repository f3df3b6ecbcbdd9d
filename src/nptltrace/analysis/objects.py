"""Objects: names of their kinds, objects that are counted together, and their users."""

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
    """Return the name of an object's kind, such as `mutex`.

    Args:
        kind: Number of the object's domain.
        flags: Flags of the object in the model.
        user_types: Names of the user's own lock types: `Traceset.lock_types` of the process.
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
    """Return whether a thread takes and releases objects of a kind as locks."""
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
    """Objects in the order of the model: columns of one length.

    Attributes:
        process: Numbers of processes.
        address: Addresses, uint64.
        kind: Numbers of kinds.
        init: Calls that initialized the objects; 0 for an object without such an event.
        first_ns: Times of the first use, in ns.
    """

    process: NDArray[Any]
    address: NDArray[Any]
    kind: NDArray[Any]
    init: NDArray[Any]
    first_ns: NDArray[Any]

    def first_alike(
        self, is_named: Callable[[int], bool], symbols: Symbols | None
    ) -> NDArray[np.int64]:
        """Return for each object the index of the first object that it is counted with.

        Objects that follow one another at an address are counted together. There are two
        exceptions, because programs such as the interpreter of Python reuse the address of a lock
        at once. Unnamed objects from different initializing calls count separately. So do locks of
        Python with different names.

        Args:
            is_named: Whether the object with an index has a name.
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
        """Separate unnamed objects at one address by their initializing calls, in `apart`."""
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
                # An object without such a call counts with the object before it.
                last = np.maximum.accumulate(np.where(places > 0, np.arange(len(places)), 0))
                apart[members] += places[last] << _KIND_BITS


@dataclass(frozen=True, slots=True)
class Users:
    """The threads that use each object.

    Attributes:
        bits: Of each object a bit for each of the first 64 threads.
        objects: Objects that threads after the first 64 use.
        threads: For each element of `objects` the thread that uses the object.
    """

    bits: NDArray[np.uint64]
    objects: NDArray[Any]
    threads: NDArray[Any]

    @classmethod
    def of(cls, objects: NDArray[Any], pairs: NDArray[Any]) -> Users:
        """Return the users of the objects of a model.

        Args:
            objects: The model's table of objects.
            pairs: The model's table of pairs of thread and object.
        """
        used = pairs[pairs["used"] & _USES_OBJECT != 0]
        return cls(objects["users"], used["object"], used["thread"])

    def later(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the later threads of some objects as one array, and the end of each object's part.

        Args:
            numbers: Numbers of objects, ascending.
        """
        order = np.argsort(self.objects, kind="stable")
        order = order[np.isin(self.objects[order], numbers)]
        return self.threads[order], np.searchsorted(self.objects[order], numbers, side="right")

    def count(self, numbers: NDArray[Any], group: NDArray[Any], count: int) -> NDArray[np.uint32]:
        """Return for each group of objects the number of threads that use one of the objects.

        Args:
            numbers: Numbers of objects.
            group: The group of each object, from 0.
            count: Number of groups.
        """
        bits = np.zeros(count, np.uint64)
        np.bitwise_or.at(bits, group, self.bits[numbers])
        group_of = np.full(len(self.bits), -1, np.int64)
        group_of[numbers] = group
        of = group_of[self.objects]
        later = np.unique(np.stack([of, self.threads.astype(np.int64)])[:, of >= 0], axis=1)
        first = np.unpackbits(bits.view(np.uint8)).reshape(count, 64).sum(axis=1, dtype=np.uint32)
        return np.asarray(first + np.bincount(later[0], minlength=count).astype(np.uint32))
