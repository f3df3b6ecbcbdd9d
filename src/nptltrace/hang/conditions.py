"""A glibc condition in memory, and signals that it gave to waiters that have left (bug 25847).

From 2.25 on, a condition has two groups of waiters. Signals go to the older group (G1), and new
waiters go to the other group (G2). Before 2.41, the library may count waiters in G1 after all of
them have left. Signals for G1 then wake no thread. From 2.41 on there are no references, so the
later words move 8 bytes forward.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target

__all__ = ["FROM_2_41", "LAYOUTS", "Condition", "Layout", "layout_of", "read_condition"]

_LAYOUT = struct.Struct("<QQ8I")
# The C library exports this function from 2.41 on.
_SINCE_2_41 = "sched_getattr"


class Layout(NamedTuple):
    """Offsets of words in a condition, in bytes.

    Attributes:
        waiters: The number of waiters. A thread that destroys the condition sleeps on this word.
        signals: The words of both groups. The waiters sleep on these words.
    """

    waiters: int
    signals: int


_BEFORE_2_41, FROM_2_41 = LAYOUTS = (Layout(36, 40), Layout(28, 32))


def layout_of(process: Target, names: Names) -> Layout | None:
    """Return the layout of conditions in the C library of a process; None if it is not known.

    Args:
        process: The process.
        names: The names in the process.
    """
    for module in process.modules:
        if module.path.rpartition("/")[2].startswith(("libc.so", "libc-")) and names.files(module):
            return FROM_2_41 if names.exported(module, _SINCE_2_41) else _BEFORE_2_41
    return None


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
    """Return the condition of a glibc before 2.41 at an address, None if it cannot be read."""
    data = process.read(address, _LAYOUT.size)
    if len(data) < _LAYOUT.size:
        return None
    words = _LAYOUT.unpack(data)
    new = words[0] & 1
    references, sizes, signals = words[2:4], words[4:6], words[8:10]
    return Condition(
        address + _BEFORE_2_41.signals + 4 * new, references[new] >> 1, words[7] >> 3,
        sizes[1 - new], signals[1 - new] >> 1,
    )  # fmt: skip
