"""Every hooked routine: same results as untraced, and exactly the expected events."""

from __future__ import annotations

import errno
import platform
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler
    from tests.tracer.counted import Runner

# Joins a thread that has ended, as programs linked before and since glibc 2.34 do.
KILL = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int old_kill(pthread_t, int), new_kill(pthread_t, int);
__asm__(".symver old_kill, pthread_kill@GLIBC_2.2.5");
__asm__(".symver new_kill, pthread_kill@GLIBC_2.34");
static void *say_tid(void *tid) { *(pid_t *)tid = gettid(); return NULL; }
int main(void)
{
    time_t end = time(NULL) + 60;
    char task[64];
    pid_t tid = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, say_tid, &tid);
    while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE) && time(NULL) < end)
        usleep(1000);
    snprintf(task, sizeof(task), "/proc/self/task/%d", (int)tid);
    while (access(task, F_OK) == 0 && time(NULL) < end)
        usleep(1000);
    printf("%d ", old_kill(thread, 0));
    printf("%d\\n", new_kill(thread, 0));
    return pthread_join(thread, NULL);
}
"""
PRIMITIVES = ["rwlock", "spin", "barrier", "sem", "once", "c11", "futex", "cancel"]


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_behaves_as_untraced(
    name: str, level: int, traced: Runner, program: Callable[[str], Path]
) -> None:
    plain = traced.plain(program(name))
    run = traced(program(name), level=level)
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, plain.status)
    assert plain.status == 0
    if level == 0:
        assert not run.only.events
    if level == 3:
        run.only.check_pairs()


def test_rwlock_events_are_complete(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("rwlock"), level=3).only
    names = process.names()
    assert names["RWLOCK_INIT"] == names["RWLOCK_DESTROY"] == 1
    # one wait for each of the six routines, two for passed deadlines, two for EDEADLK
    assert names["RWLOCK_WAIT"] == 10
    assert names["RWLOCK_WAIT_END"] == 4
    ends = [event.fields["result"] for event in process.of("RWLOCK_WAIT_END")]
    assert ends == [errno.ETIMEDOUT, errno.ETIMEDOUT, errno.EDEADLK, errno.EDEADLK]
    assert names["RWLOCK_ERROR"] == 3  # and one invalid deadline; a bad clock is not checked
    taken = process.of("RWLOCK_TAKEN_READ", "RWLOCK_TAKEN_WRITE")
    assert len(taken) == names["RWLOCK_FREE"] == 18
    waited = [event.name[13:] for event in taken if event.fields.get("wait_ns")]
    assert waited == ["READ", "WRITE"] * 3
    waits = process.of("RWLOCK_WAIT")
    assert [event.fields["readers"] for event in waits[:2]] == [1, 1]
    assert all(event.fields["owner"] == process.pid for event in waits[2:])
    assert [event.fields["write"] for event in waits] == [1, 1, 0, 1] + [0, 1] * 3


def test_rwlock_level_1_has_only_waits(traced: Runner, program: Callable[[str], Path]) -> None:
    names = traced(program("rwlock"), level=1).only.names()
    reported = {name for name in names if name.startswith("RWLOCK")}
    assert reported == {"RWLOCK_WAIT", "RWLOCK_WAIT_END", "RWLOCK_TAKEN_READ", "RWLOCK_TAKEN_WRITE"}
    assert names["RWLOCK_TAKEN_READ"] == names["RWLOCK_TAKEN_WRITE"] == 3


def test_spin_lock_events_are_complete(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("spin"), level=2).only
    first, second = [
        process.domain("SPIN", tid=tid) for tid in dict.fromkeys(e.tid for e in process.events)
    ]
    assert first == [
        "SPIN_INIT", "SPIN_TAKEN", "SPIN_FREE", "SPIN_TAKEN", "SPIN_FREE", "SPIN_DESTROY",
    ]  # fmt: skip
    assert second == ["SPIN_WAIT", "SPIN_TAKEN", "SPIN_FREE"]
    assert process.of("SPIN_TAKEN")[2].fields["wait_ns"] > 1_000_000


def test_no_thread_leaves_a_barrier_before_the_last_arrives(
    traced: Runner, program: Callable[[str], Path]
) -> None:
    process = traced(program("barrier"), level=2).only
    names = process.names()
    assert names["BARRIER_WAIT_IN"] == names["BARRIER_WAIT_OUT"] == 6
    assert sorted(event.fields["result"] for event in process.of("BARRIER_WAIT_OUT")) == [
        -1, -1, 0, 0, 0, 0,
    ]  # fmt: skip
    (init,) = process.of("BARRIER_INIT")
    assert init.fields["count"] == 3
    (error,) = process.of("BARRIER_ERROR")
    assert error.fields["result"] == errno.EINVAL
    # no thread leaves before the last thread has arrived
    order = process.domain("BARRIER_WAIT")
    assert order[:3] == ["BARRIER_WAIT_IN"] * 3


def test_semaphore_events_are_complete(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("sem"), "/ptt-hooks", level=3).only
    names = process.names()
    assert names["SEM_INIT"] == 2
    # waits that passed at once, waits that blocked, and the interrupted wait
    assert names["SEM_WAIT"] == 6
    ends = [event.fields["result"] for event in process.of("SEM_WAIT_END")]
    assert ends == [errno.ETIMEDOUT, errno.ETIMEDOUT, errno.EINTR]
    assert names["SEM_TAKEN"] == 9
    assert sum("wait_ns" in event.fields for event in process.of("SEM_TAKEN")) == 3
    assert names["SEM_POST"] == 8
    (opened,) = process.of("SEM_OPEN")
    assert (opened.text, opened.fields["value"]) == (f"/ptt-hooks-{process.pid}", 1)
    (unlinked,) = process.of("SEM_UNLINK")
    assert unlinked.text == f"/ptt-hooks-{process.pid}"
    assert names["SEM_CLOSE"] == 1
    errors = [event.fields["result"] for event in process.of("SEM_ERROR")]
    assert errors == [
        errno.EINVAL, errno.EINVAL, errno.EINVAL, errno.EINVAL, errno.EOVERFLOW, errno.ENOENT,
        errno.EEXIST, errno.ENOENT,
    ]  # fmt: skip


def test_once_reports_calls_and_waits(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("once"), level=2).only
    ends = [event.fields["cancelled"] for event in process.of_program("ONCE_END")]
    assert ends == [0, 1, 0, 0, 0]
    assert process.names()["ONCE_BEGIN"] == process.names()["ONCE_END"]
    # main waits for the slow call; both others wait for the cancelled call and for each other
    assert process.names()["ONCE_WAIT"] == process.names()["ONCE_WAIT_END"] == 3
    slow, *_ = process.of("ONCE_WAIT_END")
    assert slow.fields["wait_ns"] > 10_000_000
    nested = process.domain("ONCE_", tid=process.pid)[-4:]
    assert nested == ["ONCE_BEGIN", "ONCE_BEGIN", "ONCE_END", "ONCE_END"]


def test_c11_events_are_complete(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("c11"), level=3).only
    names = process.names()
    assert names["NEW_THREAD_CREATED"] == names["THREAD_BEGIN"] == names["THREAD_END"] == 4
    assert names["THRD_CREATE_IN"] == 4
    assert sorted(event.fields["retval"] for event in process.of("THREAD_END")) == [
        0, 0, 7, 2**64 - 3,
    ]  # fmt: skip
    assert names["THREAD_JOIN_IN"] == names["THRD_JOIN_OUT"] == 3
    assert names["THREAD_DETACH"] == 1
    assert names["MUTEX_TAKEN"] == names["MUTEX_FREE"]
    assert names["MTX_INIT_IN"] == 3
    assert names["MUTEX_INIT"] == 3  # glibc accepts any type
    assert names["COND_BROADCAST"] == names["CND_BROADCAST_IN"] == 1
    assert names["COND_WAIT_IN"] == names["CND_WAIT_IN"] == 2
    assert len(process.of_program("ONCE_BEGIN")) == 1
    assert names["CALL_ONCE_IN"] == names["CALL_ONCE_OUT"] == 2
    assert not any(name.startswith(("MUTEX_LOCK", "THREAD_CREATE")) for name in names)
    ends = [event.fields["result"] for event in process.of("MUTEX_WAIT_END")]
    assert ends == [errno.ETIMEDOUT]


def test_futex_events_are_complete(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("futex"), level=3).only
    results = [event.fields["result"] for event in process.of("FUTEX_WAIT_OUT")]
    assert results == [
        errno.EAGAIN, errno.ETIMEDOUT, errno.EFAULT, errno.ETIMEDOUT, errno.EINVAL, 0,
        errno.EDEADLK, 0,
    ]  # fmt: skip
    timeouts = [event.fields["timeout_ns"] for event in process.of("FUTEX_WAIT_IN")]
    assert timeouts[:4] == [-1, 1_000_000, -1, 1_000_000_000]
    assert process.names()["FUTEX_WAKE"] == 4  # 2 of the lock, 1 unlock, 1 for no thread
    assert process.names()["FUTEX_CALL_IN"] == process.names()["FUTEX_CALL_OUT"] == 5
    # the contender's wake-up is stamped before the end of its wait
    order = process.domain("FUTEX_W")
    assert order.index("FUTEX_WAKE", 8) < len(order) - 1 - order[::-1].index("FUTEX_WAIT_OUT")


def test_every_cancellation_is_reported(traced: Runner, program: Callable[[str], Path]) -> None:
    process = traced(program("cancel"), level=3).only
    cancelled = [
        event.name
        for event in process.events
        if event.name.endswith("_OUT") and event.fields.get("result") == errno.ECANCELED
    ]
    # each call once while it blocks, and once with the cancellation already pending
    for routine in ("COND_WAIT", "COND_TIMEDWAIT"):
        assert cancelled.count(f"{routine}_OUT") == 4  # POSIX and C11
    assert cancelled.count("COND_CLOCKWAIT_OUT") == 2
    assert cancelled.count("SEM_WAIT_OUT") == 3  # and once with the semaphore available
    assert cancelled.count("SEM_TIMEDWAIT_OUT") == 3
    assert cancelled.count("SEM_CLOCKWAIT_OUT") == 2
    assert cancelled.count("THREAD_JOIN_OUT") == 4
    assert cancelled.count("THREAD_TIMEDJOIN_OUT") == 2
    assert cancelled.count("THREAD_CLOCKJOIN_OUT") == 2
    # a cancelled condition wait holds its mutex again
    assert process.names()["MUTEX_TAKEN"] == process.names()["MUTEX_FREE"]


def test_refused_condition_wait_keeps_its_mutex(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(
        """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <pthread.h>
        int main(void)
        {
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
            struct timespec bad = {1, -1};
            int result;

            pthread_mutex_lock(&mutex);
            result = pthread_cond_timedwait(&cond, &mutex, &bad);
            return result != EINVAL || pthread_mutex_trylock(&mutex) != EBUSY;
        }
        """
    )
    run = traced(program, level=2)
    assert run.status == 0
    assert run.only.domain("MUTEX")[-1] == "MUTEX_TAKEN"


def test_cxx_locks_are_recorded(traced: Runner, cxx_program: Callable[[str], Path]) -> None:
    plain = traced.plain(cxx_program("cxx"))
    for level in (0, 1, 2, 3):
        run = traced(cxx_program("cxx"), level=level)
        assert (run.stdout, run.stderr, run.status) == (plain.stdout, "", 0)
    process = run.only
    process.check_pairs()
    ends = [event.fields["cancelled"] for event in process.of_program("ONCE_END")]
    assert ends == [1, 0, 0]
    names = process.names()
    assert names["FUTEX_WAIT_IN"] >= 2
    assert names["FUTEX_WAKE"] >= 2
    assert names["MUTEX_CLOCKLOCK_IN"] == 1
    assert names["RWLOCK_CLOCKWRLOCK_IN"] == 1
    # locks taken in destructors come before the end of their thread
    for event in process.of("THREAD_END"):
        last = [e for e in process.events if e.tid == event.tid][-1]
        assert last == event


@pytest.mark.parametrize("level", [0, 2, 3])
def test_early_and_late_calls(traced: Runner, early_program: Path, level: int) -> None:
    plain = traced.plain(early_program)
    run = traced(early_program, level=level)
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, 0)
    assert "late" in run.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="glibc has only one version there")
def test_pthread_kill_keeps_the_version_the_program_was_linked_with(
    traced: Runner, compile_c: Compiler
) -> None:
    program = compile_c(KILL, name="kill")
    plain, run = traced.plain(program), traced(program, level=3)
    assert (run.stdout, run.status) == (plain.stdout, plain.status)
    results = [event.fields["result"] for event in run.only.of("THREAD_KILL_OUT")]
    assert results == [errno.ESRCH, 0]
    assert plain.stdout.split() == ["3", "0"]
