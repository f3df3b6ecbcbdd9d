"""Handlers that call traced functions: signals arrive before or after the handler, never inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.handlers.helpers import run_traced

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Slow, so that signals would arrive while the handler runs, and with the handler's own mutex.
HANDLER = """
#include <nptl_trace.h>
#include <nptl_trace_events.h>
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int taken, posted;
void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
    pthread_mutex_lock(&mutex);
    for (volatile int i = 0; i < 3000; i++)
        ;
    taken += event.domain == NPTL_DOMAIN_MUTEX && event.event == NPTL_EV_MUTEX_TAKEN;
    posted += event.domain == NPTL_DOMAIN_SEM && event.event == NPTL_EV_SEM_POST;
    pthread_mutex_unlock(&mutex);
}
void nptl_trace_fini(void)
{
    pthread_mutex_lock(&mutex);
    printf("taken %d posted %d\\n", taken, posted);
    pthread_mutex_unlock(&mutex);
}
"""
PROGRAM = """
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
static sigjmp_buf back;
static sem_t sem;
static volatile int signals, jumps, done;
static void on_alarm(int number)
{
    (void)number;
    sem_post(&sem);
    signals++;
    if (!done && jumps < 20) {
        jumps++;
        siglongjmp(back, 1);
    }
}
int main(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct itimerval timer = {{0, 700}, {0, 700}}, none = {{0, 0}, {0, 0}};
    pthread_spinlock_t spin;
    sem_init(&sem, 0, 0);
    signal(SIGALRM, on_alarm);
    sigsetjmp(back, 1);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (jumps < 20)
        pthread_spin_init(&spin, 0);
    done = 1;
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    printf("taken 2000 posted %d\\n", signals);
    return 0;
}
"""


def test_signal_handlers_may_jump_away(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> None:
    handler = compile_c(HANDLER, "-shared", "-fPIC", name="libslow.so")
    done = run_traced(ptt, str(handler), compile_c(PROGRAM))
    assert done.returncode == 0
    expected, counted = done.stdout.splitlines()
    assert counted == expected
