"""glibc conditions in memory that shows that signals wake no thread (bug 25847)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.programs import CORPUS
from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

VERSION = tuple(
    int(part) for part in (os.confstr("CS_GNU_LIBC_VERSION") or "0 0").split()[1].split(".")
)
pytestmark = pytest.mark.skipif(
    not (2, 25) <= VERSION < (2, 41), reason="conditions of this C library have no such groups"
)

# Two threads wait in the group of new waiters. The program writes into the other group what the
# library's bug leaves there.
PROGRAM = """
    #include <pthread.h>
    #include <string.h>
    #include <unistd.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t work = PTHREAD_COND_INITIALIZER;
    static volatile int waiting;
    static void *wait_for_work(void *unused)
    {
        pthread_mutex_lock(&mutex);
        waiting++;
        for (;;)
            LEAVE
            pthread_cond_wait(&work, &mutex);
        return unused;
    }
    int main(int count, char **arguments)
    {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], 0, wait_for_work, 0);
        for (int seen = 0; seen < 2; pthread_mutex_unlock(&mutex)) {
            pthread_mutex_lock(&mutex);
            seen = waiting;
        }
        if (count > 1 && !strcmp(arguments[1], "given"))
            work.__data.__g_signals[1] += 2;
        if (count > 1 && !strcmp(arguments[1], "expected"))
            work.__data.__g_size[1] += 3;
        for (;;)
            pause();
    }
"""
# The program never calls this, but PTT must assume that it might.
TIMED = "if (waiting > 9) pthread_cond_timedwait(&work, &mutex, unused); else"


def found(ptt: Ptt, program: Path, case: str) -> list[dict[str, Any]]:
    with running(program, case) as pid:
        findings: list[dict[str, Any]] = asleep(ptt, pid, 3)["findings"]
    return findings


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("given", "1 signal of condition work went to a group of waiters that all threads have"),
        ("expected", "the next 3 signals of condition work will go to a group of waiters that all"),
    ],
)
def test_signals_to_an_empty_group_are_found(
    case: str, message: str, ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    (finding,) = found(ptt, compile_c(PROGRAM.replace("LEAVE", "")), case)
    assert finding["kind"] == "cond-wakeup"
    assert finding["message"].startswith(message)
    assert finding["object_names"] == ["work", "work"]


def test_a_signal_may_be_left_over_by_a_timed_out_wait(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(PROGRAM.replace("LEAVE", TIMED))
    assert found(ptt, program, "given") == []
    assert len(found(ptt, program, "expected")) == 1


@pytest.mark.parametrize("linked", ["-pthread", "-static"])
def test_a_condition_destroyed_under_a_waiter_is_found(
    linked: str, ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """The library waits until the waiter has left, and no thread is left to wake the waiter."""
    program = compile_c(CORPUS / "planted/destroy-locked/waiter_inside.c", f"-I{CORPUS}", linked)
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert finding["kind"] == "stuck"
    assert finding["object_names"] == ["filled", "filled"]


def test_a_sound_condition_has_no_finding(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    assert found(ptt, compile_c(PROGRAM.replace("LEAVE", "")), "sound") == []
