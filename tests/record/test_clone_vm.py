"""Children of clone() that share the thread-local storage of the thread that made them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import nptltrace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Locks a hundred times, clones a child, and then both processes lock at the same time.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define ROUNDS 20000

static pthread_mutex_t before = PTHREAD_MUTEX_INITIALIZER, after = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_child = PTHREAD_MUTEX_INITIALIZER, of_other = PTHREAD_MUTEX_INITIALIZER;
#ifdef WAITED_FOR
static volatile int go = 1;
#else
static volatile int go;
#endif

static void lock(pthread_mutex_t *mutex, int times)
{
    while (times--) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static int child(void *unused)
{
    while (!go)
        ;
    lock(&of_child, ROUNDS);
    return 0;
}

static void *other(void *unused)
{
    lock(&of_other, ROUNDS);
    return NULL;
}

int main(void)
{
    char *stack = malloc(1 << 20);
    pthread_t thread;
    int pid;

    lock(&before, 100);
    pthread_create(&thread, NULL, other, NULL);
    pid = clone(child, stack + (1 << 20), CLONE_VM | FLAGS | SIGCHLD, NULL);
    go = 1;
    lock(&after, ROUNDS);
    waitpid(pid, NULL, 0);
    pthread_join(thread, NULL);
    return 0;
}
"""
ROUNDS = 20000


def events(
    ptt: Ptt, program: Path, trace: Path, handler: str = "ring"
) -> tuple[dict[str, int], dict[str, int]]:
    """Record the program. Return its events by mutex, and losses by cause."""
    message = ptt("record", "--handler", handler, "-o", trace, "--", program).stderr
    stat = json.loads(ptt("stat", "--format", "json", trace).stdout)
    assert stat["damage_bytes"] == 0
    assert f"({stat['lost']} lost, " in message
    counts = {row["name"]: row["events"] for row in stat["objects"] if row["kind"] == "mutex"}
    return counts, stat["lost_by_cause"]


@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_parent_and_child_with_shared_storage_are_not_recorded(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path, handler: str
) -> None:
    """Their actions are counted as lost, and other threads are recorded as usual."""
    program = compile_c(PROGRAM, "-DFLAGS=0")
    counts, lost = events(ptt, program, trace_dir, handler)
    assert counts == {"before": 200, "of_other": 2 * ROUNDS}
    # Includes the parent's join of the other thread, if there is a join.
    assert 4 * ROUNDS <= lost["shared_storage"] <= 4 * ROUNDS + 4
    rows = nptltrace.open(trace_dir).table("lost").to_pylist()
    assert [row["count"] for row in rows if row["cause"] == "shared_storage"] == [
        lost["shared_storage"]
    ]


def test_a_child_that_the_parent_waits_for_is_recorded(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    """Parent and child never run at the same time: the child's events count as the parent's."""
    program = compile_c(PROGRAM, "-DFLAGS=CLONE_VFORK", "-DWAITED_FOR")
    counts, lost = events(ptt, program, trace_dir)
    assert counts == dict.fromkeys(("after", "of_child", "of_other"), 2 * ROUNDS) | {"before": 200}
    assert "shared_storage" not in lost
