"""Signal handlers that fork, and return in the child into the hook that they interrupted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Locks until a timer's handler has forked often enough, says how often; children go on a little.
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
    """What the child does in its parent's name never gets into the parent's stream."""
    program = compile_c(PROGRAM, f"-DFORK={fork}")
    said = ptt("record", "--handler", handler, "-o", trace_dir, "--", program, str(FORKS))
    locked = int(said.stdout)
    found = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert found["lost"] == found["damage_bytes"] == 0
    assert len(found["processes"]) == 1 + FORKS
    parent = max(found["processes"], key=lambda p: sum(t["events"] for t in p["threads"]))
    assert len(parent["threads"]) == 1  # none of a child's
    waits = found["event_types"].get("BUFFER_WAIT", 0)
    # with its start and its end
    assert 0 <= parent["threads"][0]["events"] - (2 * locked + FORKS + 2) <= waits
