"""Waits with time limits: the time left, and whether the limit uses the right clock."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# Waits for some seconds by the condition's clock, with a limit from another clock.
PROGRAM = """
    #include <pthread.h>
    #include <stdlib.h>
    #include <time.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    int main(int count, char **words)
    {
        pthread_condattr_t attr;
        struct timespec until;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, atoi(words[1]));
        pthread_cond_init(&never, &attr);
        clock_gettime(atoi(words[2]), &until);
        until.tv_sec += count > 3 ? atol(words[3]) : 0;
        pthread_mutex_lock(&mutex);
        return pthread_cond_timedwait(&never, &mutex, &until);
    }
"""
REALTIME, MONOTONIC = 0, 1
CENTURY_S = 100 * 366 * 86_400


@pytest.mark.parametrize("clock", [REALTIME, MONOTONIC])
def test_the_time_left_is_shown(clock: int, ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    with running(compile_c(PROGRAM), clock, clock, 5000) as pid:
        assert asleep(ptt, pid, 1)["findings"] == []
        text = " ".join(ptt("hang", pid).stdout.split())
    left = re.search(r"condition never, with a time limit that ends in (\d+\.\d) s", text)
    assert left is not None
    assert 4000 < float(left[1]) <= 5000


def test_a_limit_from_another_clock_is_found(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    program = compile_c(PROGRAM)
    with running(program, MONOTONIC, REALTIME, 1) as pid:
        (finding,) = asleep(ptt, pid, 1)["findings"]
    assert (finding["kind"], finding["object_names"]) == ("wrong-clock", ["never"])
    assert re.search(r"ends in \d\d\.\d years", finding["message"])
    assert re.search(
        r"is a time of CLOCK_REALTIME, by which it ends (in )?\d+\.\d+ s", finding["message"]
    )
    with running(program, MONOTONIC, MONOTONIC, CENTURY_S) as pid:
        assert asleep(ptt, pid, 1)["findings"] == []
