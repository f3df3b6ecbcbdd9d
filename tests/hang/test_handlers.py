"""Processes without a thread to wake the others, with and without signal handlers."""

from __future__ import annotations

import signal
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep, running
from tests.hang.test_cpython import interpreters, minor_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

# A terminal leaves SIGINT alone; a script's background jobs ignore it.
AS_A_TERMINAL = ("env", "--default-signal=INT")
# Arguments: the kind of wait, and the handled signal.
PROGRAM = """
    #define _GNU_SOURCE
    #include <linux/futex.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static sem_t token;
    static int word = 1;
    static void post(int number) { (void)number; sem_post(&token); }
    static void *idle(void *unused) { pause(); return unused; }
    int main(int count, char **words)
    {
        pthread_t thread;
        if (count > 2 && atoi(words[2]))
            signal(atoi(words[2]), post);
        if (!strcmp(words[1], "semaphore"))
            sem_wait(&token);
        pthread_mutex_lock(&mutex);
        if (!strcmp(words[1], "condition"))
            pthread_cond_wait(&never, &mutex);
        if (!strcmp(words[1], "fork")) {
            pthread_create(&thread, 0, idle, 0);
            if (fork())
                pause();
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
        return 0;
    }
"""
PYTHON = textwrap.dedent("""\
    import contextlib, faulthandler, signal, sys, threading
    with contextlib.suppress(ImportError):
        import readline  # sets a handler of SIGWINCH
    faulthandler.enable()
    stop = threading.Event()
    class Service:
        def leave(self, *unused):
            stop.set()
    if sys.argv[1:]:
        signal.signal(int(sys.argv[1]), Service().leave)
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire).start()
    stop.wait()
""")

IDLE = textwrap.dedent("""\
    import concurrent.futures, queue, sys, threading
    work, stop, pool = queue.Queue(), threading.Event(), concurrent.futures.ThreadPoolExecutor(2)
    pool.submit(int).result()
    worker = threading.Thread(target=work.get)
    worker.start()
    def more():
        return pool.submit(int).result()
    both = threading.Barrier(2)
    def wait():
        both.wait()
        return more()
    def told():
        condition = threading.Condition()
        with condition:
            condition.wait()
    def never():
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    if "job" in open(__file__).read()[-20:]:
        threading.Thread(target=work.get).start()
        job = [pool.submit(wait) for _ in range(2)][0]
""")


@pytest.mark.parametrize(
    ("case", "number", "said"),
    [
        ("condition", signal.SIGINT, ("warning", ", unless the handler of SIGINT wakes one: ")),
        ("condition", 0, ("error", "nobody is left to wake it: ")),
        ("semaphore", signal.SIGTERM, ("warning", ", unless the handler of SIGTERM wakes one: ")),
        ("semaphore", signal.SIGABRT, ("warning", ", unless the handler of SIGABRT wakes one: ")),
        ("semaphore", signal.SIGALRM, (None, "")),
        ("futex", 0, ("error", " waits for futex word")),
        ("futex", signal.SIGCHLD, (None, "")),
        ("futex", signal.SIGSEGV, ("error", "nobody is left to wake it: ")),
    ],
)
def test_a_signal_handler_may_wake_the_last_threads(
    case: str, number: int, said: tuple[str | None, str], ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    severity, unless = said
    program = compile_c(PROGRAM)
    with running(*AS_A_TERMINAL, program, case, int(number)) as pid:
        findings = asleep(ptt, pid, 1)["findings"]
        text = ptt("hang", pid, status=1 if severity else 0).stdout
    assert [(finding["kind"], finding["severity"]) for finding in findings] == (
        [("stuck", severity)] if severity else []
    )
    assert all(unless in finding["message"] for finding in findings)
    assert (f"{severity}: stuck in process {pid}" in text) == bool(severity)


def test_a_forked_child_with_a_lock_of_its_parent_is_stuck(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(PROGRAM)
    with running(program, "fork") as pid:
        (child,) = _children(ptt, pid)
        (finding,) = asleep(ptt, child, 1)["findings"]
    assert finding["kind"] == "stuck"
    assert (
        f"Process {child} was forked from process {pid}, which has 2 threads" in finding["message"]
    )


@pytest.mark.parametrize("python", interpreters())
def test_python_handlers_may_wake_the_last_threads(python: str, ptt: Ptt, tmp_path: Path) -> None:
    """The interpreter's SIGINT handler wakes no thread; a handler of the program may."""
    if not 8 <= minor_of(python) <= 14:
        pytest.skip("PTT does not read structures of this version")
    path = tmp_path / "prog.py"
    path.write_text(PYTHON, encoding="utf-8")
    with running(*AS_A_TERMINAL, python, path) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert (finding["kind"], finding["severity"]) == ("stuck", "error")
    assert "unless" not in finding["message"]
    if python != sys.executable:
        return
    with running(*AS_A_TERMINAL, python, path, int(signal.SIGTERM)) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert (finding["kind"], finding["severity"]) == ("stuck", "warning")
    assert (
        "unless the handler of SIGTERM (Service.leave (prog.py:7)) wakes one" in finding["message"]
    )


@pytest.mark.parametrize(
    ("blocked", "severities"),
    [
        ("stop.wait()", []),
        ("worker.join()", []),
        ("sys.exit()", []),
        ("pool.submit(told), stop.wait()", ["warning"]),
        ("concurrent.futures.wait([pool.submit(told)])", ["error"]),
        ("queue.SimpleQueue().get()", []),
        ("job.result()", ["error"]),
        ("pool.submit(never), pool.shutdown()", ["error"]),
    ],
)
def test_idle_workers_are_no_hang(
    blocked: str, severities: list[str], ptt: Ptt, tmp_path: Path
) -> None:
    """A service that a signal ends is no hang; a job that waits for a job of its own pool is."""
    path = tmp_path / "prog.py"
    path.write_text(IDLE + blocked + "\n", encoding="utf-8")
    threads = 5 if "job" in blocked else 2 if "exit" in blocked else 3
    with running(*AS_A_TERMINAL, sys.executable, path) as pid:
        findings = asleep(ptt, pid, threads)["findings"]
    assert [(finding["kind"], finding["severity"]) for finding in findings] == [
        ("stuck", s) for s in severities
    ]


def _children(ptt: Ptt, pid: str) -> list[str]:
    """Return the children of a process when all its threads sleep."""
    answer: dict[str, Any] = asleep(ptt, pid, 2)
    assert answer["findings"] == []
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
        return file.read().split()
