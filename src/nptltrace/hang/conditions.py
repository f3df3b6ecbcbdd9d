"""A glibc condition in memory, and signals that it gave to waiters that have left (bug 25847).

From 2.25 on, a condition has two groups of waiters. Signals go to the older group (G1), and new
waiters go to the other group (G2). Before 2.41, the library may count waiters in G1 after all of
them have left. Signals for G1 then wake no thread. Later versions, and 2.41 in some distributions,
have no references. So the later words are 8 bytes nearer to the beginning.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nptltrace.hang.targets.target import Target

__all__ = ["COUNTED", "LAYOUTS", "Condition", "Layout", "read_condition"]

_LAYOUT = struct.Struct("<QQ8I")


class Layout(NamedTuple):
    """Offsets of words in a condition, in bytes.

    Attributes:
        waiters: The number of waiters. A thread that destroys the condition sleeps on this word.
        signals: The words of both groups. The waiters sleep on these words.
    """

    waiters: int
    signals: int


# The layout with references, and the layout without references.
COUNTED, _ = LAYOUTS = (Layout(36, 40), Layout(28, 32))


class Condition(NamedTuple):
    """The words of a `pthread_cond_t`.

    Attributes:
        word: The address of the futex of new waiters.
        references: The number of threads that sleep on this futex or are about to.
        waiters: The number of threads in a wait for the condition.
        expected: The library's count of waiters in G1 without a signal.
        given: The signals for G1 that no thread has taken.
    """

    word: int
    references: int
    waiters: int
    expected: int
    given: int


def read_condition(process: Target, address: int) -> Condition | None:
    """Return the condition with references at an address, None if it cannot be read."""
    data = process.read(address, _LAYOUT.size)
    if len(data) < _LAYOUT.size:
        return None
    words = _LAYOUT.unpack(data)
    new = words[0] & 1
    references, sizes, signals = words[2:4], words[4:6], words[8:10]
    return Condition(
        address + COUNTED.signals + 4 * new, references[new] >> 1, words[7] >> 3,
        sizes[1 - new], signals[1 - new] >> 1,
    )  # fmt: skip
