"""Memory words that moved between glibc versions: words of conditions and of joins."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

import pytest

from nptltrace.hang.conditions import LAYOUTS
from nptltrace.hang.targets.target import Call, Thread
from nptltrace.hang.waits import Waits, wait_of

if TYPE_CHECKING:
    from nptltrace.hang.conditions import Layout
    from nptltrace.hang.targets.target import Target
    from nptltrace.hang.waits import Wait

BASE, TID = 0x7F00_0000_0000, 4321
BEFORE, SINCE = LAYOUTS
# Two threads have waited before, three wait now. Up to glibc 2.40, the reference counts of both
# groups come before the sizes.
WAITS = struct.pack("<QQ", 5 << 1, 2 << 1)
CONDITIONS = {
    BEFORE: WAITS + struct.pack("<8I", 6, 0, 0, 0, 1 << 2, 3 << 3, 0, 0),
    SINCE: WAITS + struct.pack("<8I", 0, 0, 1 << 2, 3 << 3, 0, 0, 0, 0),
}


class Memory:
    """A process with only a piece of memory."""

    machine = "x86_64"

    def __init__(self, data: bytes) -> None:
        self._data = bytes(256) + data + bytes(256)

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes inside the piece, and nothing outside of it."""
        at = address - BASE + 256
        return self._data[at : at + size] if 0 <= at <= len(self._data) - size else b""


def waiting(data: bytes, word: int, routine: str, value: int, layout: Layout | None) -> Wait | None:
    """Return the wait of a thread that sleeps on a word of the memory."""
    thread = Thread(1, 1, "", "S", Call(202, (BASE + word, 0x189, value, 0, 0, 0)))
    process = cast("Target", Memory(data))
    return wait_of(process, thread, frozenset({TID}), Waits(routine, routine), layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_condition_is_found_by_its_words(layout: Layout, *, is_known: bool) -> None:
    known = layout if is_known else None
    for word in (layout.signals, layout.signals + 4, layout.waiters):
        wait = waiting(CONDITIONS[layout], word, "pthread_cond_wait", 0, known)
        assert wait is not None
        assert (wait.kind, wait.object) == ("condition", BASE)


def test_the_joined_thread_is_known_by_its_memory() -> None:
    thread = bytearray(2048)
    struct.pack_into("<QQQ", thread, 0, BASE, 0, BASE)
    struct.pack_into("<I", thread, 720, TID)
    for word, value in ((720, TID), (1576, 2)):
        wait = waiting(bytes(thread), word, "pthread_join", value, None)
        assert wait is not None
        assert (wait.kind, wait.owner) == ("join", TID)
