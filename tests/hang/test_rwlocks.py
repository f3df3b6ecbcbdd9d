"""Rwlocks: waiting readers and writers, and the holder, in every state that allows a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# Threads that read or write, one after the other, in the argument's order. A second argument
# makes the lock prefer writers.
PROGRAM = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <stdio.h>
    #include <string.h>
    #include <unistd.h>
    pthread_rwlock_t table;
    static volatile int tid;
    /* Return once the thread sleeps: in a lock, or with it. */
    static void let_sleep(void)
    {
        char name[64], text[256], *state;
        FILE *file;
        while (!tid)
            usleep(1000);
        snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
        do {
            usleep(1000);
            file = fopen(name, "r");
            state = fgets(text, sizeof(text), file) ? strrchr(text, ')') : 0;
            fclose(file);
        } while (!state || state[2] != 'S');
        tid = 0;
    }
    static void *read_it(void *unused)
    {
        tid = gettid();
        pthread_rwlock_rdlock(&table);
        pause();
        return unused;
    }
    static void *write_it(void *unused)
    {
        tid = gettid();
        pthread_rwlock_wrlock(&table);
        pause();
        return unused;
    }
    int main(int count, char **arguments)
    {
        pthread_rwlockattr_t kind;
        pthread_t thread;
        pthread_rwlockattr_init(&kind);
        if (count > 2)
            pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        pthread_rwlock_init(&table, &kind);
        for (char *which = arguments[1]; *which; which++) {
            pthread_create(&thread, 0, *which == 'r' ? read_it : write_it, 0);
            let_sleep();
        }
        pause();
    }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.support import Compiler

    place = tmp_path_factory.mktemp("rwlocks")
    source = place / "rwlocks.c"
    source.write_text("#define _GNU_SOURCE\n" + PROGRAM, encoding="utf-8")
    return Compiler(place, place)(source)


@pytest.mark.parametrize(
    ("threads", "waits"),
    [
        ("wr", ["to read, held by thread"]),
        ("wwr", ["to write, held by thread", "to read, held by thread"]),
        ("rw", ["to write, held by 1 reader"]),
        ("rwr", ["to write, held by 2 readers"]),
        ("rww", ["to write, held by 1 reader"] * 2),
        ("rwr prefer", ["to write, held by 1 reader", "to read, held by 1 reader"]),
    ],
)
def test_waits_are_known_in_every_state(
    threads: str, waits: list[str], ptt: Ptt, program: Path
) -> None:
    with running(program, *threads.split()) as pid:
        answer = asleep(ptt, pid, len(threads.split(maxsplit=1)[0]) + 1)
        text = ptt("hang", pid).stdout
    assert answer["findings"] == []
    locked = [line for line in text.splitlines() if "waits for" in line]
    assert len(locked) == len(waits)
    for line, message in zip(locked, waits, strict=True):
        assert f"waits for rwlock table {message}" in line
    objects = {t["waits_for"]["name"] for t in answer["threads"] if t["state"] == "waiting"}
    assert objects == {"table"}
