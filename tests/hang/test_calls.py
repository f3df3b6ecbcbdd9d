"""Threads and processes that wait for one another in system calls."""

from __future__ import annotations

import os
import re
import signal
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep, running
from tests.real.real import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

PROGRAM = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/eventfd.h>
    #include <sys/file.h>
    #include <sys/prctl.h>
    #include <sys/stat.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static int to[2], back[2];
    static char big[300000];
    static int is(const char *word, const char *name) { return !strcmp(word, name); }
    static void *serve(void *unused)
    {
        write(back[1], big, sizeof(big));
        read(to[0], big, sizeof(big));
        return unused;
    }
    static void *wake(void *event)
    {
        uint64_t one;
        return read(*(int *)event, &one, sizeof(one)) ? event : 0;
    }
    static void *console(void *line)
    {
        return fgets(line, 80, stdin);
    }
    static void both(const char *first, const char *second)
    {
        struct flock lock = { .l_type = F_WRLCK };
        int one = open(first, O_RDWR | O_CREAT, 0600), other = open(second, O_RDWR | O_CREAT, 0600);
        flock(one, LOCK_EX);
        while (!flock(other, LOCK_EX | LOCK_NB))
            flock(other, LOCK_UN);
        flock(other, LOCK_EX);
        fcntl(one, F_SETLKW, &lock);
    }
    static void *lock_open_file(void *path)
    {
        struct flock lock = { .l_type = F_WRLCK };
        fcntl(open(path, O_RDWR | O_CREAT, 0600), F_OFD_SETLKW, &lock);
        return 0;
    }
    static int child(void)
    {
        int pid = fork();
        if (!pid)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        return !pid;
    }
    int main(int count, char **words)
    {
        const char *name = count > 1 ? words[1] : "";
        pthread_t thread;
        pipe(to);
        pipe(back);
        if (is(name, "pipes")) {
            pthread_create(&thread, 0, serve, 0);
            write(to[1], big, sizeof(big));
        } else if (is(name, "filter")) {
            if (child()) {
                close(to[1]);
                close(back[0]);
                serve(0);
            }
            close(to[0]);
            close(back[1]);
            write(to[1], big, sizeof(big));
        } else if (is(name, "end")) {
            read(to[0], big, 1);
        } else if (is(name, "worker")) {
            if (child())
                for (;;)
                    pause();
            read(to[0], big, 1);
        } else if (is(name, "eventfd")) {
            to[0] = eventfd(0, 0);
            pthread_create(&thread, 0, wake, &to[0]);
            pthread_join(thread, 0);
        } else if (is(name, "stream")) {
            dup2(to[0], 0);
            pthread_create(&thread, 0, console, big);
            usleep(100000);
            fflush(0);
        } else if (is(name, "files")) {
            if (child())
                both("a.lock", "b.lock");
            else
                both("b.lock", "a.lock");
        } else if (is(name, "open")) {
            lock_open_file("c.lock");
            pthread_create(&thread, 0, lock_open_file, "c.lock");
            pthread_join(thread, 0);
        } else if (is(name, "fifo")) {
            mkfifo("fifo", 0600);
            open("fifo", O_RDONLY);
        } else if (is(name, "vfork")) {
            if (!vfork()) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                pause();
            }
        }
        return 0;
    }
"""
# For each case: threads, kind of finding, and text of its message.
CASES = {
    "pipes": (2, "deadlock", "sleeps in write to pipe "),
    "filter": (1, "deadlock", ", which is full, read by process "),
    "end": (1, "stuck", ", which is empty, written by this process"),
    "eventfd": (2, "stuck", "sleeps in read of eventfd "),
    "files": (1, "deadlock", ".lock (fd 8), locked by process "),
    "open": (2, "stuck", "c.lock (fd 8), locked by this process"),
    "stream": (2, "stuck", "waits for stream stdin, held by thread "),
    "worker": (1, None, ", which is empty, written by this process, process "),
    "fifo": (1, None, "of FIFO fifo, until a process opens it that writes"),
    "vfork": (1, None, "sleeps in vfork until its child runs a program or ends: process "),
}


@pytest.mark.parametrize("case", CASES)
def test_waits_in_calls_name_the_other_side(
    case: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    threads, kind, said = CASES[case]
    program = compile_c(PROGRAM)
    with running(program, case, cwd=tmp_path) as pid:
        asleep(ptt, pid, threads)
        wait_until(lambda: said in _text(ptt, pid), said)
        findings = asleep(ptt, pid, threads)["findings"]
        for child in _children(pid):
            os.kill(child, signal.SIGKILL)
    assert [finding["kind"] for finding in findings] == ([kind] if kind else [])
    # The kernel may write to an eventfd.
    severity = "warning" if case == "eventfd" else "error"
    assert all(finding["severity"] == severity for finding in findings)
    assert all(said in finding["message"] for finding in findings)
    # A thread that only waits for a lock does not hold it.
    assert case != "files" or "this process" not in findings[0]["message"]


@pytest.mark.parametrize("unlinks", ["", "unlinks"])
def test_a_named_semaphore_is_open_to_every_process(
    unlinks: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """Every process may open and post the semaphore until its name is removed."""
    program = compile_c(
        """
        #include <fcntl.h>
        #include <semaphore.h>
        int main(int count, char **words)
        {
            sem_t *jobs = sem_open(words[1], O_CREAT | O_EXCL, 0600, 0);
            if (*words[2])
                sem_unlink(words[1]);
            return sem_wait(jobs);
        }
    """
    )
    name = f"ptt-{os.getpid()}-{tmp_path.name}"
    try:
        with running(program, f"/{name}", unlinks) as pid:
            findings = asleep(ptt, pid, 1)["findings"]
    finally:
        Path(f"/dev/shm/sem.{name}").unlink(missing_ok=True)  # noqa: S108 -- where the library puts it
    assert [finding["kind"] for finding in findings] == ["stuck"] * bool(unlinks)


def test_a_parent_that_reads_no_output_of_its_child_hangs(ptt: Ptt, tmp_path: Path) -> None:
    """Both are Python programs; only the interpreters handle SIGINT."""
    path = tmp_path / "prog.py"
    path.write_text(
        textwrap.dedent("""\
            import subprocess, sys
            code = "import sys; sys.stdout.write('x' * 1000000)"
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE).wait()
        """),
        encoding="utf-8",
    )
    with running("env", "--default-signal=INT", sys.executable, path) as pid:
        wait_until(lambda: "deadlock" in _text(ptt, pid), "it hangs")
        answer: dict[str, Any] = asleep(ptt, pid, 1)
        (child,) = _children(pid)
        os.kill(child, signal.SIGKILL)
    (finding,) = answer["findings"]
    assert {*finding["threads"]} == {int(pid), child}
    assert f"sleeps in wait4 for a child: process {child} " in finding["message"]
    assert f"which is full, read by process {pid} " in finding["message"]


def test_a_socket_is_shown_with_its_addresses(ptt: Ptt, tmp_path: Path) -> None:
    """Both ends belong to one server that waits for its clients: nothing is wrong."""
    path = tmp_path / "prog.py"
    path.write_text(
        textwrap.dedent("""\
            import socket, threading
            server = socket.create_server(("127.0.0.1", 0))
            client = socket.create_connection(server.getsockname())
            other, _ = server.accept()
            threading.Thread(target=client.recv, args=(1,), daemon=True).start()
            server.accept()
        """),
        encoding="utf-8",
    )
    with running("env", "--default-signal=INT", sys.executable, path) as pid:
        assert asleep(ptt, pid, 2)["findings"] == []
        text = _text(ptt, pid)
    assert re.search(r"sleeps in accept4 of TCP socket 127.0.0.1:(\d+) \(fd \d+\)", text)
    assert (
        re.search(
            r"sleeps in recvfrom of TCP socket 127.0.0.1:\d+ to 127.0.0.1:\d+ \(fd \d+\), "
            r"connected to this process",
            text,
        )
        or "connected to thread" in text
    )


def _text(ptt: Ptt, pid: str) -> str:
    return " ".join(ptt("hang", pid, status=None).stdout.split())


def _children(pid: str) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
        return [int(word) for word in file.read().split()]


def test_a_killed_reader_of_a_queue_is_found(ptt: Ptt, tmp_path: Path) -> None:
    """The reader held the queue's lock: a semaphore in shared memory, which two processes left."""
    path = tmp_path / "prog.py"
    path.write_text(
        textwrap.dedent("""\
            import multiprocessing, os, signal, sys, time
            if __name__ == "__main__":
                context = multiprocessing.get_context("fork")
                queue = context.Queue()
                readers = [context.Process(target=queue.get, daemon=True) for _ in range(2)]
                readers[0].start()
                while queue._rlock._semlock._get_value():
                    time.sleep(0.01)
                readers[1].start()
                os.kill(readers[0].pid, signal.SIGKILL)
                readers[1].join()
        """),
        encoding="utf-8",
    )
    with running("env", "--default-signal=INT", sys.executable, path) as pid:
        wait_until(lambda: "all threads of 2 processes wait" in _text(ptt, pid).lower(), "it hangs")
        (finding,) = asleep(ptt, pid, 1)["findings"]
        for child in _children(pid):
            os.kill(child, signal.SIGKILL)
    assert (finding["kind"], finding["severity"]) == ("stuck", "error")
    assert "waits for semaphore" in finding["message"]


@pytest.mark.parametrize(
    ("last", "kinds"), [("threading.Event().wait()", set()), ("results.get()", {"deadlock"})]
)
def test_only_a_missing_result_is_a_hang(
    last: str, kinds: set[str], ptt: Ptt, tmp_path: Path
) -> None:
    """Idle workers of a service are no hang; waiting for a result that no thread will send is."""
    path, ready = tmp_path / "prog.py", tmp_path / "ready"
    path.write_text(
        textwrap.dedent(f"""\
            import multiprocessing, threading
            def serve(work, results):
                results.put(0)
                for one in iter(work.get, None):
                    results.put(one)
            if __name__ == "__main__":
                context = multiprocessing.get_context("fork")
                work, results = context.Queue(), context.Queue()
                for _ in range(2):
                    context.Process(target=serve, args=(work, results)).start()
                    results.get()
                for _ in range(9):
                    work.put(1)
                    results.get()
                open({str(ready)!r}, "w").close()
                {last}
        """),
        encoding="utf-8",
    )
    with running("env", "--default-signal=INT", sys.executable, path) as pid:
        try:
            wait_until(ready.exists, "its workers have worked")
            answer = {}
            for one in [pid, *map(str, _children(pid))]:
                answer[one] = {f["kind"] for f in asleep(ptt, one, 2)["findings"]}
        finally:
            for child in _children(pid):
                os.kill(child, signal.SIGKILL)
    assert list(answer.values()) == [kinds] * 3
