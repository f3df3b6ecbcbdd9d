"""Other versions of the C library: older versions of a function, and missing functions."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support import Compiler
    from tests.tracer.counted import Runner

WAIT = """
#include <pthread.h>
#include <string.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int ready;
#ifdef OLD
__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");
#endif
static void *waits(void *arg)
{
    struct timespec past = {1, 0};
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&cond, &mutex, &past);
    while (!ready)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return pthread_join(thread, NULL);
}
"""

# An auditor for the dynamic linker that hides a function from every lookup.
HIDES = """
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
unsigned int la_version(unsigned int version)
{
    return version;
}
unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
    (void)map, (void)space, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int number, uintptr_t *from, uintptr_t *to,
                       unsigned int *flags, const char *name)
{
    static const char *const hidden[] = {"pthread_cond_clockwait", "sem_clockwait", "thrd_sleep",
                                         "_Fork", "thrd_join"};
    (void)number, (void)from, (void)to;
    if (*flags & LA_SYMB_DLSYM)
        for (unsigned int i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
            if (strcmp(name, hidden[i]) == 0)
                return 0;
    return symbol->st_value;
}
"""
ABSENT = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <unistd.h>
int main(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec past = {1, 0};
    sem_t sem;
    sem_init(&sem, 0, 0);
    pthread_mutex_lock(&mutex);
    if (pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &past) != ENOSYS)
        return 1;
    if (sem_clockwait(&sem, CLOCK_REALTIME, &past) != -1 || errno != ENOSYS)
        return 2;
    errno = 0;
    if (_Fork() != -1 || errno != ENOSYS)
        return 3;
    return thrd_join(thrd_current(), NULL) == thrd_error ? 0 : 4;
}
"""


def _held_by_one(run_events: list[str]) -> bool:
    """Return whether the mutex was always free when a thread took it."""
    held = False
    for name in run_events:
        if name == "MUTEX_TAKEN" and held:
            return False
        held = name == "MUTEX_TAKEN"
    return not held


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no older condition variables there")
def test_waits_on_old_condition_variables_release_their_mutex(
    traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(WAIT, "-DOLD"), level=2)
    assert run.status == 0
    assert _held_by_one(run.only.domain("MUTEX_"))
    names = run.only.names()
    assert names["COND_TIMEDWAIT_IN"] == names["COND_TIMEDWAIT_OUT"] == 1
    assert names["COND_WAIT_IN"] == names["COND_WAIT_OUT"] <= 1
    assert names["COND_SIGNAL"] == 1


def test_mutexes_are_free_during_waits_that_are_not_traced(
    traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(WAIT), level=2, tracing_arg="level=cond=0")
    assert run.only.domain("COND_") == []
    assert run.only.names()["MUTEX_FREE"] >= 3
    assert _held_by_one(run.only.domain("MUTEX_"))


def test_functions_that_the_c_library_lacks(traced: Runner, compile_c: Compiler) -> None:
    hides = compile_c(HIDES, "-shared", "-fPIC", name="libhides.so")
    run = traced(compile_c(ABSENT), level=2, env={"LD_AUDIT": str(hides)})
    assert run.status == 0
