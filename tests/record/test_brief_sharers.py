"""A lock in shared memory is one lock, however briefly one of its processes lives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

# The child maps the file again at another address than its parent, and ends at once by _exit().
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int fd = memfd_create("lock", 0);
    pthread_mutex_t *mutex, *here;
    pthread_mutexattr_t attr;
    pid_t child;

    if (ftruncate(fd, 65536))
        return 1;
    mutex = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attr);
    child = fork();
    if (!child) {
        here = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        pthread_mutex_lock(here);
        pthread_mutex_unlock(here);
        _exit(3);
    }
    waitpid(child, NULL, 0);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return 0;
}
"""


def test_a_shared_lock_has_one_number(ptt: Ptt, compile_c: Compiler, record: Recorder) -> None:
    trace = record(compile_c(PROGRAM))
    query = "select distinct lock_id from holds"
    assert len(json.loads(ptt("sql", trace, query, "--format", "json").stdout)) == 1
