"""A thread that waits for a once routine before its first event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

# This library stands behind the tracer: a late caller finds that another thread runs the routine.
SLOW = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <pthread.h>
    #include <unistd.h>
    __thread int late;
    volatile int waits, runs;
    int pthread_once(pthread_once_t *control, void (*routine)(void))
    {
        int (*real)(pthread_once_t *, void (*)(void)) = dlsym(RTLD_NEXT, "pthread_once");
        if (late) {
            waits = 1;
            while (!runs)
                usleep(100);
        }
        return real(control, routine);
    }
"""
PROGRAM = """
    #include <pthread.h>
    #include <unistd.h>
    extern __thread int late;
    extern volatile int waits, runs;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static void routine(void)
    {
        runs = 1;
        usleep(30000);
    }
    static void *second(void *unused)
    {
        late = 1;
        pthread_once(&once, routine);
        return unused;
    }
    int main(void)
    {
        pthread_t thread;
        pthread_create(&thread, 0, second, 0);
        while (!waits)
            usleep(100);
        pthread_once(&once, routine);
        return pthread_join(thread, 0);
    }
"""


def test_the_wait_lies_within_the_run_of_the_routine(
    compile_c: Compiler, record: Recorder, ptt: Ptt
) -> None:
    library = compile_c(SLOW, "-shared", "-fPIC", name="libslow.so")
    trace = record(compile_c(PROGRAM, str(library)))
    query = """
        select w.dur_ns, w.held_ns, h.t_ns - w.t_ns as before,
               h.t_ns + h.dur_ns - w.t_ns as begun_before_end, h.dur_ns as ran
        from named_waits w join named_holds h on h.lock_id = w.lock_id where w.kind = 'once'
    """
    (found,) = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert found["begun_before_end"] > 20_000_000
    assert found["held_ns"] > 20_000_000
    assert found["held_ns"] <= min(found["dur_ns"], found["ran"])
