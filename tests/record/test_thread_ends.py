"""Threads that began without a hook, or that act after their end was reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# A key's destructor locks in each round, also in the last.
LATE = """
#include <pthread.h>
#include <stdlib.h>
static pthread_key_t key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void again(void *value)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_setspecific(key, value);
}
static void *run(void *arg)
{
    pthread_setspecific(key, arg);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_key_create(&key, again);
    for (int i = 0; i < atoi(argv[1]); i++) {
        pthread_create(&thread, NULL, run, &key);
        pthread_join(thread, NULL);
    }
}
"""
TIMER = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int ticks;
static void tick(union sigval value)
{
    pthread_mutex_lock(&mutex);
    ticks++;
    pthread_mutex_unlock(&mutex);
}
int main(int argc, char **argv)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
    struct itimerspec every = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
    while (ticks < atoi(argv[1]))
        usleep(1000);
    timer_delete(timer);
    usleep(200000);
}
"""
KEYS = """
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_key_t key;
    int keys = 0;
    while (pthread_key_create(&key, NULL) == 0)
        keys++;
    printf("%d\\n", keys);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, run, NULL);
        pthread_join(thread, NULL);
    }
}
"""


def types(ptt: Ptt, trace: Path) -> dict[str, Any]:
    """Return the events by type; nothing may be lost."""
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["lost"] == 0, stat["lost_by_cause"]
    counts: dict[str, Any] = stat["event_types"]
    return counts


@pytest.mark.slow
def test_late_destructors_use_up_no_entries(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    """More threads in sequence than entries; each thread takes two entries."""
    counts = types(ptt, record(compile_c(LATE), "34000"))
    assert counts["MUTEX_TAKEN"] == 4 * 34000
    assert counts["THREAD_BEGIN"] == counts["THREAD_END"] == 34000


def test_threads_started_by_the_c_library_begin_and_end(
    ptt: Ptt, record: Recorder, compile_c: Compiler
) -> None:
    """Each timer expiration runs in a thread that the C library starts without a hook."""
    counts = types(ptt, record(compile_c(TIMER), "50"))
    assert counts["THREAD_BEGIN"] == counts["THREAD_END"] == counts["MUTEX_TAKEN"] >= 50


def test_the_program_can_use_all_keys(ptt: Ptt, compile_c: Compiler, trace_dir: Path) -> None:
    """The program gets as many keys as untraced, and its threads still end in the trace."""
    done = ptt("record", "-o", trace_dir, "--", compile_c(KEYS))
    assert done.stdout == "1024\n"
    counts = types(ptt, trace_dir)
    assert counts["THREAD_BEGIN"] == counts["THREAD_END"] == 20
