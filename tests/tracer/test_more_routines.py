"""Aliases of hooked functions, and rarely used routines: they make the same events as others."""

from __future__ import annotations

import errno
import platform
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler
    from tests.tracer.counted import Runner

# Old programs and compiler libraries call functions by these names.
OTHER_NAMES = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#define OTHER(type, own, name, ...) \\
    type own(__VA_ARGS__); \\
    __asm__(".symver " #own ", " #name "@GLIBC_" VERSION)
#define VERSION "2.2.5"
OTHER(int, m_init, __pthread_mutex_init, pthread_mutex_t *, const pthread_mutexattr_t *);
OTHER(int, m_destroy, __pthread_mutex_destroy, pthread_mutex_t *);
OTHER(int, m_lock, __pthread_mutex_lock, pthread_mutex_t *);
OTHER(int, m_trylock, __pthread_mutex_trylock, pthread_mutex_t *);
OTHER(int, m_unlock, __pthread_mutex_unlock, pthread_mutex_t *);
OTHER(int, r_init, __pthread_rwlock_init, pthread_rwlock_t *, const pthread_rwlockattr_t *);
OTHER(int, r_destroy, __pthread_rwlock_destroy, pthread_rwlock_t *);
OTHER(int, r_rdlock, __pthread_rwlock_rdlock, pthread_rwlock_t *);
OTHER(int, r_wrlock, __pthread_rwlock_wrlock, pthread_rwlock_t *);
OTHER(int, r_tryrdlock, __pthread_rwlock_tryrdlock, pthread_rwlock_t *);
OTHER(int, r_trywrlock, __pthread_rwlock_trywrlock, pthread_rwlock_t *);
OTHER(int, r_unlock, __pthread_rwlock_unlock, pthread_rwlock_t *);
OTHER(int, once, __pthread_once, pthread_once_t *, void (*)(void));
OTHER(int, key_create, __pthread_key_create, pthread_key_t *, void (*)(void *));
OTHER(pid_t, other_fork, __fork, void);
OTHER(int, set_scheduler, __sched_setscheduler, pid_t, int, const struct sched_param *);
#undef VERSION
#define VERSION "2.4"
OTHER(int, make_consistent, pthread_mutex_consistent_np, pthread_mutex_t *);
static pthread_mutex_t mutex, robust;
static pthread_rwlock_t rwlock;
static pthread_once_t control = PTHREAD_ONCE_INIT;
static void nothing(void) {}
static void *dies(void *arg) { m_lock(&robust); return arg; }
int main(void)
{
    struct sched_param param = {0};
    pthread_mutexattr_t attr;
    pthread_key_t key;
    pthread_t thread;
    pid_t child;
    int bad = m_init(&mutex, NULL) | m_lock(&mutex) | m_unlock(&mutex) | m_trylock(&mutex);
    bad |= m_unlock(&mutex) | m_destroy(&mutex);
    bad |= r_init(&rwlock, NULL) | r_rdlock(&rwlock) | r_tryrdlock(&rwlock) | r_unlock(&rwlock);
    bad |= r_unlock(&rwlock) | r_wrlock(&rwlock) | r_unlock(&rwlock) | r_trywrlock(&rwlock);
    bad |= r_unlock(&rwlock) | r_destroy(&rwlock) | once(&control, nothing);
    bad |= key_create(&key, NULL) | set_scheduler(0, SCHED_OTHER, &param);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    m_init(&robust, &attr);
    pthread_create(&thread, NULL, dies, NULL);
    pthread_join(thread, NULL);
    m_lock(&robust);
    bad |= make_consistent(&robust) | m_unlock(&robust);
    child = other_fork();
    if (child == 0)
        _exit(0);
    return bad | (waitpid(child, NULL, 0) != child);
}
"""

# The mutex is locked while its ceiling changes. The program sets the lock word itself, because it
# may lack the right to the priority.
CEILING = """
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex;
static void *unlocks(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    __atomic_fetch_and(&mutex.__data.__lock, ~3, __ATOMIC_RELEASE);
    syscall(SYS_futex, &mutex.__data.__lock, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return arg;
}
int main(void)
{
    pthread_mutexattr_t attr;
    pthread_t thread;
    int old, low = sched_get_priority_min(SCHED_FIFO);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
    pthread_mutexattr_setprioceiling(&attr, low);
    pthread_mutex_init(&mutex, &attr);
    __atomic_fetch_or(&mutex.__data.__lock, 2, __ATOMIC_ACQUIRE);
    pthread_create(&thread, NULL, unlocks, NULL);
    if (pthread_mutex_setprioceiling(&mutex, low + 1, &old) || old != low)
        return 1;
    pthread_join(thread, NULL);
    return pthread_mutex_setprioceiling(&mutex, 1000, NULL) == 0;
}
"""

SCHEDULING = """
#define _GNU_SOURCE
#include <linux/types.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
int main(void)
{
    struct attributes batch = {.size = sizeof(batch), .policy = SCHED_BATCH};
    struct sched_param param = {0};
    int bad = sched_setparam(0, &param) != 0;
    bad |= syscall(SYS_sched_setattr, 0, &batch, 0) != 0;
    bad |= syscall(SYS_sched_setscheduler, getpid(), SCHED_IDLE, &param) != 0;
    bad |= syscall(SYS_sched_setparam, 0, &param) != 0;
    bad |= syscall(SYS_sched_setattr, -1, &batch, 0) == 0;
    bad |= sched_setparam(1 << 22, &param) == 0;
    return bad;
}
"""

SIGQUEUE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
static volatile int got;
static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    got = info->si_value.sival_int;
}
int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = 42}) || got != 42)
        return 1;
    return pthread_sigqueue(pthread_self(), 1000, (union sigval){0}) == 0;
}
"""

# One thread waits with each call in turn; the first thread wakes it until it has returned.
FUTEX2 = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define PRIVATE_U32 130
struct waiter { uint64_t value, word; uint32_t flags, reserved; };
static uint32_t words[3];
static int back;
static void *waits(void *arg)
{
    struct waiter two[2] = {{0, (uintptr_t)&words[1], PRIVATE_U32, 0},
                            {0, (uintptr_t)&words[2], PRIVATE_U32, 0}};
    long bad = syscall(455, &words[0], 0UL, 0xffffffffUL, PRIVATE_U32, NULL, 0);
    __atomic_store_n(&back, 1, __ATOMIC_RELEASE);
    bad |= syscall(449, two, 2, 0, NULL, 0) != 1;
    __atomic_store_n(&back, 2, __ATOMIC_RELEASE);
    return bad ? arg : NULL;
}
static void wake(uint32_t *word, int until)
{
    while (__atomic_load_n(&back, __ATOMIC_ACQUIRE) < until) {
        syscall(454, word, 0xffffffffUL, 1, PRIVATE_U32);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}
int main(void)
{
    struct waiter pair[2] = {{0, (uintptr_t)&words[0], PRIVATE_U32, 0},
                             {0, (uintptr_t)&words[1], PRIVATE_U32, 0}};
    struct timespec past = {0, 0};
    pthread_t thread;
    void *bad;
    errno = 0;
    if (syscall(455, &words[0], 0UL, 0xffffffffUL, PRIVATE_U32, &past, 1) != -1 ||
        errno == ENOSYS || errno == EPERM)
        return 77;
    if (errno != ETIMEDOUT)
        return 1;
    if (syscall(456, pair, 0, 5, 6) != 0 || syscall(456, NULL, 0, 1, 1) != -1 || errno != EINVAL)
        return 2;
    if (syscall(449, NULL, 1, 0, NULL, 0) != -1 || errno != EINVAL)
        return 3;
    pthread_create(&thread, NULL, waits, &thread);
    wake(&words[0], 1);
    wake(&words[2], 2);
    pthread_join(thread, &bad);
    return bad != NULL;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has these versions")
def test_aliases_make_the_same_events(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(OTHER_NAMES)
    assert traced.plain(program).status == 0
    run = traced(program, level=2)
    assert run.status == 0
    process = run.processes[0]
    names = process.names()
    assert names["MUTEX_INIT"] == 2
    assert names["MUTEX_DESTROY"] == names["MUTEX_CONSISTENT"] == 1
    assert len(process.of_program("MUTEX_TAKEN")) == 4
    assert len(process.of_program("MUTEX_FREE")) == 3
    assert names["RWLOCK_INIT"] == names["RWLOCK_DESTROY"] == 1
    assert names["RWLOCK_TAKEN_READ"] == names["RWLOCK_TAKEN_WRITE"] == 2
    assert names["RWLOCK_FREE"] == 4
    assert len(process.of_program("ONCE_BEGIN")) == 1
    assert names["THREAD_PRIORITY"] == names["PROCESS_FORK"] == 1


def test_priority_ceilings_are_reported(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(CEILING)
    run = traced(program, level=3)
    assert (traced.plain(program).status, run.status) == (0, 0)
    run.only.check_pairs()
    (wait,) = run.only.of_program("MUTEX_WAIT")
    (end,) = run.only.of_program("MUTEX_WAIT_END")
    (mutex,) = {event.object for event in run.only.of_program("MUTEX_INIT")}
    assert wait.object == end.object == mutex
    assert wait.tid == end.tid == run.only.pid
    assert end.fields["wait_ns"] > 1_000_000
    assert end.fields["result"] == 0
    (ceiling,) = run.only.of("MUTEX_CEILING")
    assert ceiling.fields["ceiling"] > 0
    (error,) = run.only.of("MUTEX_ERROR")
    assert error.fields["result"] == errno.EINVAL


def test_policies_and_priorities_are_reported(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(SCHEDULING)
    run = traced(program, level=1)
    assert (traced.plain(program).status, run.status) == (0, 0)
    events = run.only.of("THREAD_PRIORITY")
    assert [event.fields["policy"] for event in events] == [0, 3, 5, 5]  # other, batch, idle
    assert {event.tid for event in events} == {run.only.pid}


def test_queued_signals_are_reported(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(SIGQUEUE)
    run = traced(program, level=3)
    assert (traced.plain(program).status, run.status) == (0, 0)
    run.only.check_pairs()
    assert [event.fields["signal"] for event in run.only.of("THREAD_KILL")] == [10, 1000]
    results = [event.fields["result"] for event in run.only.of("THREAD_SIGQUEUE_OUT")]
    assert results == [0, errno.EINVAL]


def test_futex2_calls_are_reported(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(FUTEX2)
    plain = traced.plain(program)
    if plain.status == 77:
        pytest.skip("this kernel has no futex2")
    run = traced(program, level=3)
    assert (plain.status, run.status) == (0, 0)
    run.only.check_pairs()
    waits = run.only.of("FUTEX_WAIT_IN")
    ends = run.only.of("FUTEX_WAIT_OUT")
    words = sorted({event.object for event in waits if event.object})
    assert words[1] - words[0] == 4
    # a timeout, a refusal, and the two waits of the other thread
    assert [event.fields["result"] for event in ends if event.tid == run.only.pid] == [
        errno.ETIMEDOUT, errno.EINVAL,
    ]  # fmt: skip
    others = [event for event in ends if event.tid != run.only.pid]
    assert [event.object for event in others] == words
    assert [event.fields["result"] for event in others] == [0, 0]
    assert {event.fields["op"] for event in waits if event.object} == {9 | 128}
    woken = run.only.of("FUTEX_WAKE")
    assert {event.object for event in woken if event.object} == {words[0], words[1] + 4}
    assert {event.fields["count"] for event in woken} == {1, 5}
