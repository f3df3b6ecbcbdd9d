"""Entries for processes and threads are given back; processes and threads without one count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt

NATIVE = Path(__file__).parents[2] / "native"

# Maps the buffers of its own recording, which have the tables.
HEAD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layout/ptt_abi.h"

static struct ptt_segment *map(void)
{
    char path[4096], *begin = strchr(getenv("PTHREAD_NPTL_TRACE"), ':') + 1;
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "%.*s/segment", (int)strcspn(begin, ":,"), begin);
    fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &st) < 0)
        exit(3);
    return mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}
"""
ONE_BY_ONE = (
    HEAD
    + """
static int used(struct ptt_segment *segment)
{
    struct ptt_process *process = (void *)((char *)segment + segment->process_offset);
    int n = 0;

    for (unsigned int i = 0; i < segment->process_count; i++)
        n += __atomic_load_n(&process[i].state, __ATOMIC_ACQUIRE) != PTT_PROCESS_FREE;
    return n;
}

int main(void)
{
    struct ptt_segment *segment = map();

    for (int i = 0; i < 200; i++) {
        if (fork() == 0)
            _exit(0);
        wait(NULL);
    }
    for (int i = 0; i < 6000 && used(segment) > 1; i++)
        usleep(10000);
    return used(segment) > 1;
}
"""
)
AT_ONE_TIME = (
    HEAD
    + """
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *lock(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void)
{
    struct ptt_segment *segment = map();
    pthread_t thread[10];
    int ends[2];
    char c;

    segment->process_count = segment->thread_count = 4;
    pthread_barrier_init(&barrier, NULL, 10);
    for (int i = 0; i < 10; i++)
        pthread_create(&thread[i], NULL, lock, NULL);
    for (int i = 0; i < 10; i++)
        pthread_join(thread[i], NULL);
    if (pipe(ends) < 0)
        return 3;
    for (int i = 0; i < 10; i++)
        if (fork() == 0) {
            close(ends[1]);
            _exit(read(ends[0], &c, 1));
        }
    close(ends[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
"""
)


def test_entries_of_processes_are_given_back(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    """When its children have ended, only the program's own entry is in use."""
    program = compile_c(ONE_BY_ONE, f"-I{NATIVE}/ring", f"-I{NATIVE}/include")
    ptt("record", "-o", trace_dir, "--", program)
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert len(stat["processes"]) == 201
    assert stat["lost"] == stat["untraced_processes"] == 0


def test_processes_and_threads_without_an_entry_are_counted(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    """With room for four: of ten threads, and of ten processes, three get an entry."""
    program = compile_c(AT_ONE_TIME, f"-I{NATIVE}/ring", f"-I{NATIVE}/include")
    done = ptt("record", "-o", trace_dir, "--", program)
    assert "7 processes ran untraced: too many at one time" in done.stderr
    # Standard error belongs to the program: its processes print nothing there.
    assert all(line.startswith("ptt: ") for line in done.stderr.splitlines())
    assert "ptt: ring: " not in done.stderr
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["untraced_processes"] == 7
    # At least the mutex events of seven threads.
    assert stat["lost_by_cause"]["too_many_threads"] >= 7 * 2
    message = ptt("stat", trace_dir).stdout
    assert "too_many_threads" in message
    assert "7 processes ran untraced\n" in message
