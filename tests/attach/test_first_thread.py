"""Processes that outlive their first thread."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.hang.targets.process import Process
from tests.attach.test_attach import attached, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# The first thread ends at the first command, and the other thread at the second.
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
def test_the_other_threads_are_recorded_to_their_end(
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
        # The recording ends with the program's last thread.
        assert process.stdout.readline() == "end\n"
        assert process.wait(timeout=60) == 0
        assert recorder.wait(timeout=60) == 0
    assert facts_of(trace_dir)["state"] == "complete"
    report = json.loads(ptt("report", "--format", "json", trace_dir).stdout)
    assert [row["holds"] for row in report["objects"] if row["name"] == "mutex"] == [100]


@pytest.mark.skipif(os.geteuid() != 0, reason="root only: the other tests cover an ordinary user")
@pytest.mark.usefixtures("native_in_process")
def test_an_ordinary_user_sees_the_other_threads(compile_c: Callable[..., Path]) -> None:
    """After the first thread has ended, its files in /proc belong to root."""
    program = os.open(compile_c(PROGRAM), os.O_RDONLY)
    told, tell = os.pipe()
    hear, say = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(told, 0)
        os.dup2(say, 1)
        _become_nobody()
        os.execve(program, ["program"], {})  # noqa: S606 -- of root, by descriptor
    try:
        os.write(tell, b"e")
        text = b""
        while b"alone" not in text:
            text += os.read(hear, 100)
        _look(os.getpid())  # loads the modules that the child needs
        looking = os.fork()
        if not looking:
            status = 1
            try:
                _become_nobody()
                status = 0 if _look(pid) == ["Z", "S"] else 1
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(looking, 0)[1]) == 0
        os.write(tell, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for fd in (program, told, tell, hear, say):
            os.close(fd)


def _look(pid: int) -> list[str]:
    process = Process(pid)
    assert process.modules
    assert process.files is not None
    assert process.files.opened(0) is not None
    return [thread.state for thread in process.threads()]


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
