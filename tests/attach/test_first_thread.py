"""Processes whose first thread ends before the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.attach.test_attach import attached, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# The first thread ends when it is told, and the other one when it is told again.
PROGRAM = """
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static void say(const char *word)
    {
        puts(word);
        fflush(stdout);
    }
    static void at_the_end(void)
    {
        say("end");
    }
    static void *work(void *first)
    {
        char c;
        pthread_join(*(pthread_t *)first, NULL);
        say("alone");
        while (read(0, &c, 1) == 1 && c != 'x')
            for (int i = 0; c == 'w' && i < 100; i++) {
                pthread_mutex_lock(&mutex);
                pthread_mutex_unlock(&mutex);
            }
        return first;
    }
    int main(void)
    {
        static pthread_t first;
        pthread_t thread;
        char c;
        first = pthread_self();
        atexit(at_the_end);
        pthread_create(&thread, NULL, work, &first);
        say("ready");
        if (read(0, &c, 1) == 1)
            pthread_exit(NULL);
        return 1;
    }
"""


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_the_others_are_recorded_to_their_end(
    when: str, ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))

    def send(letter: str) -> None:
        process.stdin.write(letter)
        process.stdin.flush()

    def end_first() -> None:
        send("e")
        assert process.stdout.readline() == "alone\n"

    if when == "before":
        end_first()
    with attached(ptt, "-o", trace_dir, str(process.pid)) as recorder:
        if when == "meanwhile":
            end_first()
        send("w")
        send("x")
        # The recording ends with the last thread of the program, as the program does.
        assert process.stdout.readline() == "end\n"
        assert process.wait(timeout=60) == 0
        assert recorder.wait(timeout=60) == 0
    assert facts_of(trace_dir)["state"] == "complete"
    report = json.loads(ptt("report", "--format", "json", trace_dir).stdout)
    assert [one["holds"] for one in report["objects"] if one["name"] == "mutex"] == [100]
