"""Threads that Redis parks at mutexes are idle; the same mutexes in another program are locks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

PROGRAM = """
    #include <pthread.h>
    #include <sys/epoll.h>

    static pthread_mutex_t io_threads_mutex[4];
    static volatile int stops;

    static void *io_thread(void *mutex)
    {
        for (;;) {
            pthread_mutex_lock(mutex);
            pthread_mutex_unlock(mutex);
            if (stops)
                return 0;
        }
    }

    int main(void)
    {
        struct epoll_event event;
        pthread_t thread[4];
        int all = epoll_create1(0), i;

        for (i = 1; i < 4; i++) {
            pthread_mutex_init(&io_threads_mutex[i], 0);
            pthread_mutex_lock(&io_threads_mutex[i]);
            pthread_create(&thread[i], 0, io_thread, &io_threads_mutex[i]);
        }
        epoll_wait(all, &event, 1, 300);
        stops = 1;
        for (i = 1; i < 4; i++)
            pthread_mutex_unlock(&io_threads_mutex[i]);
        for (i = 1; i < 4; i++)
            pthread_join(thread[i], 0);
        return 0;
    }
"""


def test_parked_threads_are_no_finding(compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    for name, kinds in {
        "redis-server": set(),
        "redis-check-rdb": set(),  # Debian's redis-server links to this file
        "server": {"sleeping-holder", "long-hold"},
    }.items():
        trace = record(compile_c(PROGRAM, name=name))
        text = ptt("check", "--long-hold", "200ms", "--format", "json", trace, status=None).stdout
        assert {finding["kind"] for finding in json.loads(text)["findings"]} == kinds
        report = json.loads(ptt("report", "--format", "json", trace).stdout)
        assert (report["wait_ns"] > 0, report["idle_ns"] > 0) == (bool(kinds), not kinds)
