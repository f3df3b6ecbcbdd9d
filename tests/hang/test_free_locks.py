"""Threads that wait although no thread holds the object: a free mutex, an ended thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running
from tests.real.real import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

# A thread that runs only on an idle processor is woken, and a handler delays it before it takes
# the mutex. Or two threads join the same thread, and the kernel wakes the first of them.
PROGRAM = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <string.h>
    #include <unistd.h>
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    static pthread_t first, second;
    static int leave[2];
    static void stop(int number)
    {
        (void)number;
        pause();
    }
    static void *idle(void *unused)
    {
        struct sched_param none = { 0 };
        pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
        pthread_mutex_lock(&gate);
        return unused;
    }
    static void *next(void *unused)
    {
        pthread_mutex_lock(&gate);
        return unused;
    }
    static void *ends(void *unused)
    {
        return read(leave[0], &unused, 1) ? 0 : unused;
    }
    static void *joins(void *unused)
    {
        pthread_join(first, 0);
        return unused;
    }
    int main(int count, char **words)
    {
        cpu_set_t one;
        if (count > 1 && !strcmp(words[1], "joined")) {
            pipe(leave);
            pthread_create(&first, 0, ends, 0);
            pthread_create(&second, 0, joins, 0);
            usleep(50000);
            pthread_create(&second, 0, joins, 0);
            usleep(50000);
            write(leave[1], "", 1);
            pthread_exit(0);
        }
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof(one), &one);
        signal(SIGUSR1, stop);
        pthread_mutex_lock(&gate);
        pthread_create(&first, 0, idle, 0);
        usleep(100000);
        pthread_create(&second, 0, next, 0);
        usleep(100000);
        pthread_mutex_unlock(&gate);
        pthread_kill(first, SIGUSR1);
        pthread_join(second, 0);
        return 0;
    }
"""


@pytest.fixture
def program(compile_c: Callable[..., Path]) -> Path:
    return compile_c(PROGRAM, "-O1", "-fomit-frame-pointer")


def test_a_wakeup_lost_to_a_thread_in_a_handler_is_found(ptt: Ptt, program: Path) -> None:
    with running(program) as pid:
        answer = asleep(ptt, pid, 3)
        text = " ".join(ptt("hang", pid, status=1).stdout.split())
    (finding,) = answer["findings"]
    assert (finding["kind"], finding["object_names"]) == ("lost-wakeup", ["gate"])
    assert "waits for mutex gate, which nobody holds" in text
    assert "held by" not in text
    assert "its wake-up went to thread " in finding["message"]
    assert (
        "which is in a handler of SIGUSR1 that interrupted pthread_mutex_lock()"
        in finding["message"]
    )


def test_a_second_join_of_an_ended_thread_is_stuck(ptt: Ptt, program: Path) -> None:
    with running(program, "joined") as pid:
        answer = asleep(ptt, pid, 1, ended=1)
        text = " ".join(ptt("hang", pid, status=1).stdout.split())
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]
    assert ", which has ended" in text


def test_a_handler_that_needs_the_interrupted_heap_deadlocks(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(
        """
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *volatile blocks[64];
        static pthread_t first;
        static void allocate(int number)
        {
            (void)number;
            blocks[0] = malloc(100000);
        }
        static void *interrupt(void *unused)
        {
            for (;;) {
                pthread_kill(first, SIGUSR1);
                usleep(200);
            }
            return unused;
        }
        int main(void)
        {
            pthread_t other;
            first = pthread_self();
            signal(SIGUSR1, allocate);
            pthread_create(&other, 0, interrupt, 0);
            for (;;) {
                for (int i = 1; i < 64; i++)
                    blocks[i] = malloc(1500 + 37 * i);
                for (int i = 1; i < 64; i++)
                    free(blocks[i]);
            }
        }
    """,
        "-fomit-frame-pointer",
    )
    with running(program) as pid:
        wait_until(lambda: "malloc lock" in ptt("hang", pid, status=None).stdout, "it hangs")
        text = " ".join(ptt("hang", pid, status=None).stdout.split())
        stacks = ptt("hang", "--stacks", pid, status=None).stdout
    # At this place, free() may not yet have had the lock.
    if "int_free" not in stacks:
        assert f"waits for malloc lock main_arena, held by thread {pid} " in text
        assert "self-deadlock" in text


@pytest.mark.parametrize("case", ["handler", "fork"])
def test_an_internal_lock_of_the_c_library_is_named(
    case: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """The library reads a time zone, with its lock held, from a FIFO without a writer."""
    program = compile_c(
        """
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/stat.h>
        #include <time.h>
        #include <unistd.h>
        static void tell(int number)
        {
            time_t now = number;
            struct tm tm;
            localtime_r(&now, &tm);
        }
        static void *first(void *unused)
        {
            tell(0);
            return unused;
        }
        int main(int count, char **words)
        {
            char zone[4096];
            pthread_t other;
            snprintf(zone, sizeof(zone), ":%s", words[2]);
            mkfifo(words[2], 0600);
            setenv("TZ", zone, 1);
            if (count > 2 && *words[1] == 'h') {
                signal(SIGALRM, tell);
                ualarm(50000, 0);
                tell(0);
            }
            pthread_create(&other, 0, first, 0);
            usleep(50000);
            if (!fork()) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                tell(0);
            }
            pause();
        }
    """
    )
    with running(program, case, tmp_path / "zone") as pid:
        at = [pid] if case == "handler" else []

        def seen() -> str:
            at[:] = at or Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
            said = ptt("hang", at[0], status=None).stdout if at else ""
            return " ".join(said.split())

        wait_until(lambda: "waits for C library lock" in seen(), "it hangs")
        text = seen()
    if case == "handler":
        assert "error: self-deadlock" in text
        assert ", in a handler of SIGALRM that interrupted " in text
    else:
        assert "error: stuck" in text
        assert ", held by an unknown thread" in text
        assert "was forked from process" in text
