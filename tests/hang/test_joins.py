"""A thread that joins another thread, which has just begun or just ended."""

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
    """A process with only one readable word: the word of the join."""

    def __init__(self, word: bytes, *, others: bool = False) -> None:
        self.word, self.others = word, others

    def has_others(self, threads: list[Thread]) -> bool:
        assert threads
        return self.others

    def thread(self, tid: int) -> Thread | None:
        return Thread(tid, tid, "main", "S", turns=1)  # the thread has run since the look

    def read(self, address: int, size: int) -> bytes:
        assert (address, size) == (0x1000, 4)
        return self.word


@pytest.mark.parametrize("state", ["", "Z"], ids=["gone", "ended"])
@pytest.mark.parametrize(
    ("word", "blocked"),
    [(JOINED, True), (0, False), (None, False)],
    ids=["still named", "cleared", "unreadable"],
)
def test_a_join_of_an_ended_thread_is_not_blocked(
    state: str, word: int | None, *, blocked: bool
) -> None:
    """The kernel has cleared the word, but the waiter has not run yet."""
    wait = Wait("join", 0x1000, JOINED, private=True, word=0x1000)
    main = ThreadPicture(4711, Thread(4711, 4711, "main", "S"), wait, "", (), "")
    threads = [main]
    if state:
        ended = Thread(JOINED, JOINED, "worker", state)
        threads.append(ThreadPicture(4711, ended, None, "", (), ""))
    memory = Memory(b"" if word is None else word.to_bytes(4, "little"))
    picture = Picture(4711, "prog", "prog", tuple(threads))
    assert (enders(cast("Any", memory), picture) is not None) == blocked


def test_a_thread_created_after_the_listing_may_wake_the_joiner() -> None:
    wait = Wait("join", 0x1000, JOINED, private=True, word=0x1000)
    main = ThreadPicture(4711, Thread(4711, 4711, "main", "S"), wait, "", (), "")
    memory = Memory(JOINED.to_bytes(4, "little"), others=True)
    picture = Picture(4711, "prog", "prog", (main,))
    assert enders(cast("Any", memory), picture) is None


def test_threads_created_after_the_listing_are_seen() -> None:
    process = Process(os.getpid())
    threads = process.threads()
    assert not process.has_others(threads)
    ends = threading.Event()
    other = threading.Thread(target=ends.wait)
    other.start()
    assert process.has_others(threads)
    ends.set()
    other.join()
