"""Processes that may have started after the program."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from nptltrace.recording import recorder


@pytest.fixture(name="no_listing")
def _no_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No code may list all processes: there can be tens of thousands."""

    def refuse(_: object) -> list[str]:
        pytest.fail("all processes were listed")

    monkeypatch.setattr(os, "listdir", refuse)


def fork() -> int:
    child = os.fork()
    if child == 0:
        os._exit(0)
    return child


def last_pid() -> int:
    with Path("/proc/loadavg").open(encoding="ascii") as file:
        return int(file.read().split()[-1])


def retried_where_others_start_many() -> tuple[int, int, set[int]]:
    """Return two processes in order of start, and the pids that may follow the first."""
    while True:
        first, second = fork(), fork()
        done = threading.Event()
        other = threading.Thread(target=done.wait)
        other.start()
        try:
            tid = other.native_id
            assert tid is not None
            if first < second < tid and last_pid() - first < recorder._FEW_PIDS // 2:
                pids = recorder._pids_after(first, 0.1)
                assert tid not in pids
                return first, second, pids
        finally:
            done.set()
            other.join()
            for child in (first, second):
                os.waitpid(child, 0)


@pytest.mark.usefixtures("no_listing")
def test_few_new_pids_are_tried_one_by_one() -> None:
    first, second, pids = retried_where_others_start_many()
    assert second in pids
    assert first not in pids
    assert os.getpid() not in pids


def test_after_a_long_time_any_pid_may_be_new() -> None:
    assert os.getppid() in recorder._pids_after(fork_and_wait(), 60.0)


def fork_and_wait() -> int:
    child = fork()
    os.waitpid(child, 0)
    return child
