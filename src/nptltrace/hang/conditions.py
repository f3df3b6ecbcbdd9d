"""A glibc condition in memory: signals that it gave to waiters that are not there (bug 25847).

From 2.25 on a condition keeps two groups of waiters: signals go to the older one (G1), new waiters
to the other (G2). Before 2.41 the library may believe that somebody is left in G1 after all have
left it. What is given to G1 then wakes nobody. From 2.41 on the references are gone, and the words
behind them are 8 bytes further to the front.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.target import Target

__all__ = ["FROM_2_41", "LAYOUTS", "Condition", "Layout", "layout_of", "read_condition"]

_LAYOUT = struct.Struct("<QQ8I")
# A function that the C library has from 2.41 on.
_SINCE_2_41 = "sched_getattr"


class Layout(NamedTuple):
    """Where a condition has its words, in bytes.

    Attributes:
        waiters: The number of threads that wait for it. Who destroys it sleeps there.
        signals: The words of both groups, on which their waiters sleep.
    """

    waiters: int
    signals: int


_BEFORE_2_41, FROM_2_41 = LAYOUTS = (Layout(36, 40), Layout(28, 32))


def layout_of(process: Target, names: Names) -> Layout | None:
    """Return how the C library of a process lays out conditions; None if that is not known.

    Args:
        process: The process.
        names: Names addresses in it.
    """
    for module in process.modules:
        if module.path.rpartition("/")[2].startswith(("libc.so", "libc-")) and names.files(module):
            return FROM_2_41 if names.exported(module, _SINCE_2_41) else _BEFORE_2_41
    return None


class Condition(NamedTuple):
    """The words of a `pthread_cond_t`.

    Attributes:
        word: Address of the futex that new waiters sleep on.
        references: How many threads sleep there, or are about to.
        waiters: How many threads are in a wait for it.
        expected: How many waiters the library believes G1 has that had no signal yet.
        given: Signals given to G1 that nobody has taken.
    """

    word: int
    references: int
    waiters: int
    expected: int
    given: int

    def is_all_in_new_group(self, asleep: int) -> bool:
        """Return whether all that wait for it sleep in G2, so that G1 is empty.

        Args:
            asleep: How many threads of the process sleep on `word`.
        """
        return asleep == self.waiters == self.references


def read_condition(process: Target, address: int) -> Condition | None:
    """Return the condition of glibc before 2.41 at an address, None if it cannot be read."""
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
