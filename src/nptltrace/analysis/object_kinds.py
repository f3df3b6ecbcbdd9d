"""Names of the kinds of objects; locks of other libraries are named by their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding import libptttrack_sums
from nptltrace._binding.headers.lock_function import PTT_LOCK_TYPE_GIVEN
from nptltrace.catalog import DOMAINS, FUTEX_KINDS, LOCK_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NO_LOCKS", "is_lock", "kind_of", "nothing_contended"]

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
