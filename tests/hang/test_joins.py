"""A thread that waits for the end of another one, which has just begun or just ended."""

from __future__ import annotations

import os
import threading
from typing import Any, cast

import pytest

from nptltrace.hang.other_processes import enders
from nptltrace.hang.picture import Picture
from nptltrace.hang.targets.process import Process
from nptltrace.hang.targets.target import Thread
from nptltrace.hang.thread_picture import ThreadPicture
from nptltrace.hang.waits import Wait

JOINED = 4712


class Memory:
    """A process of which only the word that a join waits for can be read."""

    def __init__(self, word: bytes, *, others: bool = False) -> None:
        self.word, self.others = word, others

    def has_others(self, threads: list[Thread]) -> bool:
        assert threads
        return self.others

    def thread(self, tid: int) -> Thread | None:
        return Thread(tid, tid, "main", "S", turns=1)  # it has run since

    def read(self, address: int, size: int) -> bytes:
        assert (address, size) == (0x1000, 4)
        return self.word


@pytest.mark.parametrize("state", ["", "Z"], ids=["gone", "ended"])
@pytest.mark.parametrize(
    ("word", "blocked"),
    [(JOINED, True), (0, False), (None, False)],
    ids=["still named", "cleared", "unreadable"],
)
def test_the_thread_that_is_joined_has_ended(
    state: str, word: int | None, *, blocked: bool
) -> None:
    """The kernel has cleared the word, and the waiter has no processor yet."""
    wait = Wait("join", 0x1000, JOINED, private=True, word=0x1000)
    main = ThreadPicture(4711, Thread(4711, 4711, "main", "S"), wait, "", (), "")
    threads = [main]
    if state:
        ended = Thread(JOINED, JOINED, "worker", state)
        threads.append(ThreadPicture(4711, ended, None, "", (), ""))
    memory = Memory(b"" if word is None else word.to_bytes(4, "little"))
    picture = Picture(4711, "prog", "prog", tuple(threads))
    assert (enders(cast("Any", memory), picture) is not None) == blocked


def test_a_thread_that_has_come_since_they_were_listed_may_wake_them() -> None:
    wait = Wait("join", 0x1000, JOINED, private=True, word=0x1000)
    main = ThreadPicture(4711, Thread(4711, 4711, "main", "S"), wait, "", (), "")
    memory = Memory(JOINED.to_bytes(4, "little"), others=True)
    picture = Picture(4711, "prog", "prog", (main,))
    assert enders(cast("Any", memory), picture) is None


def test_others_are_seen() -> None:
    process = Process(os.getpid())
    threads = process.threads()
    assert not process.has_others(threads)
    ends = threading.Event()
    other = threading.Thread(target=ends.wait)
    other.start()
    assert process.has_others(threads)
    ends.set()
    other.join()
