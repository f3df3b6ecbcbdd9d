"""Stacks of threads in signal handlers continue with the interrupted code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

PROGRAM = """
    #include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <unistd.h>

    pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
    static void __attribute__((noinline)) note(int signal)
    {
        pthread_mutex_lock(&log_lock);
        if (signal)
            *(volatile int *)0 = kill(getpid(), signal);
        pthread_mutex_unlock(&log_lock);
    }
    static void on_fault(int signal)
    {
        note(0);
    }
    static void on_user(int signal)
    {
        on_fault(0);
    }
    int main(int count, char **words)
    {
        int own = atoi(words[1]);
        static char stack[1 << 16];
        stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
        struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | own };
        if (words[2][0] == 'a')
            sigaltstack(&other, 0);
        sigemptyset(&action.sa_mask);
        sigaction(SIGUSR1, &action, 0);
        note(SIGUSR1);
    }
"""
# Flags of the handler: SA_SIGINFO, SA_NODEFER.
FLAGS = {"plain": 0, "info": 4, "again": 0x40000000}


@pytest.mark.parametrize("stack", ["own", "alternate"])
@pytest.mark.parametrize("flags", FLAGS)
def test_the_interrupted_code_is_named(
    flags: str, stack: str, ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(PROGRAM, "-g", "-O1")
    with running(program, FLAGS[flags], stack) as pid:
        answer = asleep(ptt, pid, 1)
    (finding,) = answer["findings"]
    assert finding["kind"] == "self-deadlock"
    # While the handler runs, its signal is blocked and therefore known, except with SA_NODEFER.
    by = "a signal handler" if flags == "again" else "a handler of SIGUSR1"
    assert finding["message"].endswith(f", in {by} that interrupted kill() in note()")
    frames = answer["threads"][0]["stack"]
    (handler,) = (n for n, frame in enumerate(frames) if frame.startswith("(signal handler)"))
    assert frames[handler - 1].startswith("on_fault+")
    behind = [frame.partition("+")[0] for frame in frames[handler + 1 :]]
    assert [name for name in behind if name in {"note", "main"}] == ["note", "main"]
