"""`--stop`: running threads stand still for a moment, and then continue whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

pytestmark = [
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="--stop is for x86-64"),
    pytest.mark.alone,  # threads stand still for moments only
]

# A thread that counts with a lock held, a thread that waits for the lock, and a thread that would
# notice an interrupted call.
PROGRAM = """
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/epoll.h>
    pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    volatile unsigned long counted;
    static void *count(void *unused)
    {
        pthread_mutex_lock(&busy);
        for (;;)
            counted++;
        return unused;
    }
    static void *want(void *unused)
    {
        poll(0, 0, 50);
        pthread_mutex_lock(&busy);
        return unused;
    }
    int main(void)
    {
        struct epoll_event event;
        pthread_t threads[2];
        pthread_create(&threads[0], 0, count, 0);
        pthread_create(&threads[1], 0, want, 0);
        if (epoll_wait(epoll_create1(0), &event, 1, -1) < 0)
            printf("epoll_wait: %d\\n", errno);
        return 1;
    }
"""


def states(pid: str) -> list[str]:
    text = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [line.rpartition(")")[2].split()[0] for line in text]


def has_time(pid: str) -> int:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11])


def goes_on(pid: str) -> bool:
    begin, until = has_time(pid), time.monotonic() + 30
    while has_time(pid) < begin + 3 and time.monotonic() < until:
        time.sleep(0.01)
    return has_time(pid) >= begin + 3 and not {"t", "T"} & {*states(pid)}


def test_running_threads_are_seen_at_their_place(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    program = compile_c(PROGRAM)
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while "waits for mutex" not in ptt("hang", str(process.pid)).stdout:
            assert time.monotonic() < until
        for _ in range(5):
            message = ptt("hang", "--stop", "--format", "json", str(process.pid)).stdout
            answer: dict[str, Any] = json.loads(message)
            assert answer["findings"] == []
            by_call = {(t["waits_for"] or {}).get("kind"): t for t in answer["threads"]}
            assert by_call[None]["state"] == "runnable"
            assert by_call[None]["stack"][0].startswith("count+0x")
            assert by_call["mutex"]["waits_for"]["owner_tid"] == by_call[None]["tid"]
            assert by_call["epoll_wait"]["state"] == "asleep"
        assert goes_on(str(process.pid))
        # No call came back with EINTR.
        assert process.poll() is None
    finally:
        process.kill()
        assert process.communicate()[0] == b""


def test_a_thread_that_spins_forever_is_found(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """If no other thread can continue, it is stuck; the lock names no owner."""
    program = compile_c("""
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        pthread_spinlock_t slot;
        static void *serve(void *unused)
        {
            for (;;)
                pause();
            return unused;
        }
        int main(int count, char **arguments)
        {
            pthread_t thread;
            (void)arguments;
            if (count > 1)
                pthread_create(&thread, 0, serve, 0);
            pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
            pthread_spin_lock(&slot);
            puts("spins");
            fflush(stdout);
            pthread_spin_lock(&slot);
            return 0;
        }
    """)
    for more, kinds in (((), ["stuck"]), (("serve",), [])):
        with subprocess.Popen([program, *more], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"spins\n"
                pid = str(process.pid)
                # The first look may come before the thread spins.
                until = time.monotonic() + 30
                waits: dict[str, Any] | None = None
                while waits is None and time.monotonic() < until:
                    message = ptt("hang", "--stop", "--format", "json", pid, status=None).stdout
                    answer: dict[str, Any] = json.loads(message)
                    (waits,) = [t["waits_for"] for t in answer["threads"] if str(t["tid"]) == pid]
            finally:
                process.kill()
        assert waits is not None
        assert (waits["kind"], waits["name"], waits["owner_tid"]) == ("spin lock", "slot", None)
        assert [finding["kind"] for finding in answer["findings"]] == kinds


def test_the_process_continues_when_ptt_is_killed(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """PTT is killed at any moment, also while the threads stand still."""
    with running(compile_c(PROGRAM)) as pid:
        for number in range(8):
            script = (
                "import os, sys, time\n"
                "from nptltrace.hang.targets.process import Process\n"
                "from nptltrace.hang.targets.stop import Stopped\n"
                f"with Stopped(Process({pid})):\n"
                "    print('stopped', flush=True)\n"
                "    time.sleep(60)\n"
            )
            looking = subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, env=ptt.environment()
            )
            assert looking.stdout is not None
            if number % 2:
                assert looking.stdout.readline() == b"stopped\n"
                assert "t" in states(pid)
            else:
                time.sleep(number * 0.03)
            looking.send_signal(signal.SIGKILL)
            looking.wait()
            looking.stdout.close()
            assert goes_on(pid)


def test_signals_are_not_lost(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    program = compile_c("""
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static volatile sig_atomic_t taken;
        static void take(int number) { taken += number == SIGRTMIN; }
        int main(void)
        {
            signal(SIGRTMIN, take);
            puts("ready");
            fflush(stdout);
            while (taken < 200)
                ;
            return 0;
        }
    """)
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        number = 0
        while number < 200:
            looking = subprocess.Popen(
                [sys.executable, "-m", "nptltrace", "hang", "--stop", str(process.pid)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ptt.environment(),
            )  # fmt: skip
            while looking.poll() is None and number < 200:
                os.kill(process.pid, signal.SIGRTMIN)
                number += 1
                time.sleep(0.01)
            looking.wait()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_process_under_another_tracer_is_not_stopped(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c("""
        #include <sys/ptrace.h>
        #include <sys/wait.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void)
        {
            pid_t child = fork();
            if (!child)
                for (;;)
                    pause();
            ptrace(PTRACE_SEIZE, child, 0, 0);
            printf("%d\\n", child);
            fflush(stdout);
            waitpid(child, 0, 0);
            return 0;
        }
    """)
    process = subprocess.Popen([program], stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    child = process.stdout.readline().strip()
    try:
        message = ptt("hang", "--stop", child, status=2).stderr
        assert message.startswith(
            f"ptt: error: cannot stop process {child}: process {process.pid} "
        )
        assert "nothing found" in ptt("hang", child).stdout
    finally:
        os.kill(int(child), signal.SIGKILL)
        process.communicate()


def test_an_interrupted_wait_continues(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """The kernel continues the wait through another system call."""
    program = compile_c("""
        #include <pthread.h>
        #include <time.h>
        pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t never = PTHREAD_COND_INITIALIZER;
        int main(void)
        {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 1000;
            pthread_mutex_lock(&own);
            pthread_cond_timedwait(&never, &own, &until);
        }
    """)
    with running(program) as pid:
        asleep(ptt, pid, 1)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(int(pid), number)
        (thread,) = asleep(ptt, pid, 1)["threads"]
    assert thread["waits_for"]["kind"] == "condition"
    assert thread["waits_for"]["name"] == "never"
    assert thread["waits_for"]["timed"]
