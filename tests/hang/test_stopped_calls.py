"""Waits with a time limit in a stopped and continued process: the same answer as before."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

PROGRAM = """
    #define _GNU_SOURCE
    #include <linux/futex.h>
    #include <poll.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <signal.h>
    #include <sys/syscall.h>
    #include <threads.h>
    #include <time.h>
    #include <unistd.h>

    pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER, inherits;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER, read_by_one = PTHREAD_RWLOCK_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    sem_t empty;
    mtx_t c11;
    pthread_t sleeper;
    unsigned gates[4] = { 1, 2, 3, 0 }, zero;

    static struct timespec hour(clockid_t clock)
    {
        struct timespec now;
        clock_gettime(clock, &now);
        now.tv_sec += 3600;
        return now;
    }

    #define WAITS(name, clock, call) \\
        static void *name(void *unused) \\
        { \\
            struct timespec limit = hour(clock); \\
            call; \\
            (void)limit; \\
            return unused; \\
        }
    WAITS(timedlock, CLOCK_REALTIME, pthread_mutex_timedlock(&ledger, &limit))
    WAITS(clocklock, CLOCK_REALTIME, pthread_mutex_clocklock(&ledger, CLOCK_REALTIME, &limit))
    WAITS(pi_timedlock, CLOCK_REALTIME, pthread_mutex_timedlock(&inherits, &limit))
    WAITS(timedrdlock, CLOCK_REALTIME, pthread_rwlock_timedrdlock(&written, &limit))
    WAITS(timedwrlock, CLOCK_REALTIME, pthread_rwlock_timedwrlock(&written, &limit))
    WAITS(clockwrlock, CLOCK_MONOTONIC,
          pthread_rwlock_clockwrlock(&read_by_one, CLOCK_MONOTONIC, &limit))
    WAITS(clockrdlock, CLOCK_MONOTONIC,
          pthread_rwlock_clockrdlock(&written, CLOCK_MONOTONIC, &limit))
    WAITS(rdlock, CLOCK_MONOTONIC, pthread_rwlock_rdlock(&written))
    WAITS(wrlock, CLOCK_MONOTONIC, pthread_rwlock_wrlock(&written))
    WAITS(clockwait, CLOCK_MONOTONIC, pthread_mutex_lock(&own);
          pthread_cond_clockwait(&never, &own, CLOCK_MONOTONIC, &limit))
    WAITS(sem, CLOCK_MONOTONIC, sem_clockwait(&empty, CLOCK_MONOTONIC, &limit))
    WAITS(mtx, CLOCK_REALTIME, mtx_timedlock(&c11, &limit))
    WAITS(timedjoin, CLOCK_REALTIME, pthread_timedjoin_np(sleeper, 0, &limit))
    WAITS(futex, CLOCK_REALTIME,
          limit.tv_sec = 3600; syscall(SYS_futex, &gates[0], FUTEX_WAIT_PRIVATE, 1, &limit, 0, 0))
    WAITS(futexof0, CLOCK_REALTIME,
          limit.tv_sec = 3600; syscall(SYS_futex, &zero, FUTEX_WAIT_PRIVATE, 0, &limit, 0, 0))
    WAITS(polls, CLOCK_REALTIME, poll(0, 0, 3600000))
    WAITS(naps, CLOCK_REALTIME, usleep(3600000000U))
    WAITS(pauses, CLOCK_REALTIME, pause())

    int main(void)
    {
        static const struct {
            const char *name;
            void *(*run)(void *);
        } all[] = {
            { "timedlock", timedlock }, { "clocklock", clocklock },
            { "pi_timedlock", pi_timedlock }, { "timedrdlock", timedrdlock },
            { "timedwrlock", timedwrlock },
            { "clockwrlock", clockwrlock }, { "clockrdlock", clockrdlock }, { "rdlock", rdlock },
            { "wrlock", wrlock }, { "clockwait", clockwait }, { "sem", sem }, { "mtx", mtx },
            { "timedjoin", timedjoin }, { "futex", futex }, { "futexof0", futexof0 },
            { "polls", polls }, { "naps", naps },
        };
        pthread_mutexattr_t attr;
        pthread_t thread;

        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&inherits, &attr);
        mtx_init(&c11, mtx_timed);
        pthread_mutex_lock(&ledger);
        pthread_mutex_lock(&inherits);
        pthread_rwlock_wrlock(&written);
        pthread_rwlock_rdlock(&read_by_one);
        mtx_lock(&c11);
        pthread_create(&sleeper, 0, pauses, 0);
        for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
            pthread_create(&thread, 0, all[i].run, 0);
            pthread_setname_np(thread, all[i].name);
        }
        pause();
    }
"""
# For each thread, the kind and name of its wait.
WAITS = {
    "timedlock": ("mutex", "ledger"), "clocklock": ("mutex", "ledger"),
    "pi_timedlock": ("mutex", "inherits"), "timedrdlock": ("rwlock", "written"),
    "timedwrlock": ("rwlock", "written"), "clockwrlock": ("rwlock", "read_by_one"),
    "clockrdlock": ("rwlock", "written"), "rdlock": ("rwlock", "written"),
    "wrlock": ("rwlock", "written"), "clockwait": ("condition", "never"),
    "sem": ("semaphore", "empty"), "mtx": ("mutex", "c11"), "timedjoin": ("join", None),
    "futex": ("futex", "gates"), "futexof0": ("futex", "zero"), "polls": ("poll", ""),
}  # fmt: skip
OWNED = {kind for kind, _ in WAITS.values()} - {"condition", "semaphore", "futex", "poll"}


@pytest.mark.parametrize("way", ["dynamic", "static"])
def test_waits_are_the_same_after_a_stop(
    way: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    program = compile_c(PROGRAM, "-g", "-O1", *(["-static"] if way == "static" else []))
    with running(program, cwd=tmp_path) as pid:
        before = _said(asleep(ptt, pid, 19), pid)
        for send in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(int(pid), send)
            _until(pid, stopped=send == signal.SIGSTOP)
        after = _said(asleep(ptt, pid, 19), pid)
    assert {name: before[name][:2] for name in WAITS if WAITS[name][1] is not None} == {
        name: wait for name, wait in WAITS.items() if wait[1] is not None
    }
    assert before["timedjoin"][0] == "join"
    assert before["naps"][0] in {"clock_nanosleep", "nanosleep"}
    assert before == after
    mains = {"mutex", "rwlock"}
    assert {said[2] for said in before.values() if said[0] in mains} <= {int(pid), None}
    assert before["timedrdlock"][2] == int(pid)
    for name, said in before.items():
        assert ".c:" in said[4], (name, said)


def _said(found: dict[str, Any], pid: str) -> dict[str, tuple[Any, ...]]:
    """Return by thread name the facts of each thread: wait, owner, limit and site."""
    text = {thread["name"]: thread for thread in found["threads"] if str(thread["tid"]) != pid}
    return {
        name: (
            thread["waits_for"]["kind"], thread["waits_for"]["name"],
            thread["waits_for"]["owner_tid"], thread["waits_for"]["timed"],
            " ".join(thread["stack"]),
        )
        for name, thread in text.items()
    }  # fmt: skip


def _until(pid: str, *, stopped: bool) -> None:
    """Wait until all threads of a process are stopped, or none is stopped."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        states = [
            task.joinpath("stat").read_text().rpartition(")")[2].split()[0]
            for task in Path(f"/proc/{pid}/task").iterdir()
        ]
        if all((state == "T") == stopped for state in states):
            return
        time.sleep(0.01)
