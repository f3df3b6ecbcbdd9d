"""Threads that come and go faster than the recorder writes their events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.record.packets import babeltrace_count, streams

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

# A number of threads in all, and how many of them at one time.
PROGRAM = """
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *once(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]), at_once = atoi(argv[2]);
    pthread_t threads[64];

    for (int i = 0; i < count + at_once; i++) {
        if (i >= at_once)
            pthread_join(threads[i % at_once], NULL);
        if (i < count)
            pthread_create(&threads[i % at_once], NULL, once, NULL);
    }
    return 0;
}
"""


def test_short_threads_share_few_files(compile_c: Compiler, record: Recorder, ptt: Ptt) -> None:
    trace = record(compile_c(PROGRAM, "-pthread", name="short_threads"), "4000", "16")
    types = json.loads(ptt("stat", "--format", "json", trace).stdout)["event_types"]
    assert (types["THREAD_BEGIN"], types["THREAD_END"]) == (4000, 4000)
    assert types["MUTEX_FREE"] == 4000
    assert "EVENTS_LOST" not in types
    # A busy machine may let threads wait in vain now and then.
    assert len(streams(trace)) < 1000
    assert babeltrace_count(trace) == sum(types.values())
