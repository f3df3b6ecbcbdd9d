"""Signal handlers fork, and the child returns into the hook that the signal interrupted."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Locks until a timer's handler has forked often enough, prints the count; children go on a little.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t is_child, forks, wanted;

static void handler(int number)
{
    if (is_child || forks >= wanted)
        return;
    if (FORK() == 0)
        is_child = 1;
    else
        forks++;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 700}, {0, 700}};
    long locked = 0, in_child = 0;

    wanted = atoi(argv[1]);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (forks < wanted) {
        pthread_mutex_lock(&mutex);
        locked++;
        pthread_mutex_unlock(&mutex);
        if (is_child && ++in_child == 30)
            _exit(0);
    }
    timer = (struct itimerval){0};
    setitimer(ITIMER_REAL, &timer, NULL);
    while (wait(NULL) > 0)
        ;
    printf("%ld\\n", locked);
    return 0;
}
"""
FORKS = 150


@pytest.mark.parametrize("handler", ["ring", "shared"])
@pytest.mark.parametrize("fork", ["fork", "_Fork"])
def test_parent_loses_nothing(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path, fork: str, handler: str
) -> None:
    """The child's actions in its parent's name never get into the parent's stream."""
    program = compile_c(PROGRAM, f"-DFORK={fork}")
    message = ptt("record", "--handler", handler, "-o", trace_dir, "--", program, str(FORKS))
    locked = int(message.stdout)
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["lost"] == stat["damage_bytes"] == 0
    assert len(stat["processes"]) == 1 + FORKS
    parent = max(stat["processes"], key=lambda p: sum(t["events"] for t in p["threads"]))
    assert len(parent["threads"]) == 1  # no thread of a child
    waits = stat["event_types"].get("BUFFER_WAIT", 0)
    # plus the fork and the end of each child, and the parent's own start and end
    assert 0 <= parent["threads"][0]["events"] - (2 * locked + 2 * FORKS + 2) <= waits


# Steps through an unlock; each pass goes one instruction further, and a handler forks there.
# The parent lets the child run first.
STEPS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t is_child, steps, wanted;
static volatile int *passed;

static void step(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    const struct timespec pause = {.tv_nsec = 100000};

    if (steps++ != wanted)
        return;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    is_child = fork() == 0;
    for (int i = 0; i < 500 && !is_child && !*passed; i++)
        syscall(SYS_nanosleep, &pause, NULL);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};

    passed = mmap(NULL, sizeof(*passed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    sigaction(SIGTRAP, &action, NULL);
    do {
        steps = *passed = 0;
        pthread_mutex_lock(&mutex);
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
        pthread_mutex_unlock(&mutex);
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
        if (is_child) {
            *passed = 1;
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            _exit(0);
        }
        wait(NULL);
    } while (steps > wanted++);
    printf("%d\\n", (int)wanted);
    return 0;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="uses the trap flag of x86-64")
@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_fork_at_each_instruction(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path, handler: str
) -> None:
    """A writer that continues in the child writes nothing visible, wherever the fork was."""
    program = compile_c(STEPS, "-mno-red-zone")
    # No event comes between the interrupted unlock and the child's continuation.
    level = ["-l", "0,mutex=2"]
    message = ptt("record", *level, "--handler", handler, "-o", trace_dir, "--", program)
    passes = int(message.stdout)
    assert passes > 100
    assert "unfinished" not in message.stderr
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["lost"] == stat["damage_bytes"] == 0
    assert len(stat["processes"]) == passes
    events = [sum(thread["events"] for thread in p["threads"]) for p in stat["processes"]]
    waits = stat["event_types"].get("BUFFER_WAIT", 0)
    assert 0 <= max(events) - 2 * (passes + 1) <= waits
    # The child has an event of the interrupted release if the release had not begun.
    assert all(2 <= count <= 3 + waits for count in sorted(events)[:-1])
    assert len({thread["tid"] for p in stat["processes"] for thread in p["threads"]}) == passes
