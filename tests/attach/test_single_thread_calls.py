"""Calls that the kernel allows only to single-threaded processes, in an attached process."""

from __future__ import annotations

import errno
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.attach.test_attach import attached, events_of, facts_of, send, threads_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

# Makes the call that it reads, and answers with the error number. A timer interrupts the program
# all the time. Its child is in its own user namespace, and ends with its parent.
PROGRAM = """
    #define _GNU_SOURCE
    #include <errno.h>
    #include <fcntl.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <poll.h>
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stddef.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <unistd.h>
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static volatile sig_atomic_t ticks;
    static void tick(int number)
    {
        ticks += number != 0;
    }
    static void *wait(void *end)
    {
        char c;
        return read(*(int *)end, &c, 1) < 0 ? end : NULL;
    }
    static int namespace_of_child(int *end)
    {
        char path[64], c;
        int ready[2];
        pid_t child;
        if (pipe(ready))
            return -1;
        child = fork();
        if (!child) {
            close(end[1]);
            c = unshare(CLONE_NEWUSER) ? 'n' : 'y';
            if (write(ready[1], &c, 1) == 1)
                wait(end);
            _exit(0);
        }
        if (read(ready[0], &c, 1) != 1 || c != 'y')
            return -1;
        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)child);
        return open(path, O_RDONLY);
    }
    /* The program may make all calls except those that only the tracer makes. */
    static int confine(void)
    {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog all = {4, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            return -1;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
    }
    static int call(const char *word, int fd)
    {
        if (!strcmp(word, "user"))
            return unshare(CLONE_NEWUSER);
        if (!strcmp(word, "number"))
            return (int)syscall(SYS_unshare, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD);
        if (!strcmp(word, "memory"))
            return unshare(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD);
        if (!strcmp(word, "join"))
            return setns(fd, 0);
        if (!strcmp(word, "processes"))
            return unshare(CLONE_NEWUSER | CLONE_NEWPID);
        if (!strcmp(word, "often")) {
            struct pollfd more = {.events = POLLIN};
            int failed = 0;
            do
                failed |= unshare(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD);
            while (poll(&more, 1, 0) == 0);
            return failed;
        }
        if (!strcmp(word, "confine"))
            return confine();
        if (!strcmp(word, "files"))
            return unshare(CLONE_FILES);
        return unshare(1);
    }
    int main(int count, char **arguments)
    {
        const struct itimerval often = {.it_interval = {0, 2000}, .it_value = {0, 2000}};
        int end[2], fd;
        pthread_t thread;
        ssize_t length;
        char line[64];
        if (pipe(end) || (fd = namespace_of_child(end)) < 0)
            return puts("no namespaces") < 0;
        if (count > 1 && arguments[1][0] == 't')
            pthread_create(&thread, NULL, wait, end);
        puts("ready");
        fflush(stdout);
        while ((length = read(0, line, sizeof(line))) > 0) {
            int result;
            line[length - 1] = '\\0';
            signal(SIGALRM, tick);
            setitimer(ITIMER_REAL, &often, NULL);
            errno = 0;
            result = call(line, fd);
            printf("%d\\n", result ? errno : 0);
            setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            fflush(stdout);
        }
        return 0;
    }
"""


@pytest.fixture
def program(compile_c: Callable[..., Path]) -> Path:
    path = compile_c(PROGRAM)
    done = subprocess.run([path], input="", capture_output=True, text=True, check=True)
    if done.stdout != "ready\n":
        pytest.skip("no user namespaces here")
    return path


def taken(ptt: Ptt, trace: Path) -> int:
    return [e["event"] for e in events_of(ptt, trace)].count("MUTEX_TAKEN")


def test_the_calls_work_and_the_recording_goes_on(
    ptt: Ptt, program: Path, start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(program)
    calls = ["memory", "number", "files", "memory", "wrong", "memory", "user"]
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        with_agent = len(threads_of(process.pid))
        for call in calls:
            assert send(process, call) == (str(errno.EINVAL) if call == "wrong" else "0")
        assert len(threads_of(process.pid)) == with_agent == 2
    assert threads_of(process.pid) == [str(process.pid)]
    assert send(process, "memory") == "0"
    facts = facts_of(trace_dir)
    assert facts["state"] == "complete"
    assert facts["attached"]["left"]
    assert taken(ptt, trace_dir) == len(calls)
    # The memory of the first tracer thread's start is gone too.
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    code = [line.split() for line in maps.splitlines() if line.split()[1].startswith("r-x")]
    assert not [words for words in code if len(words) == 5]


def test_the_calls_work_while_the_recording_ends(
    ptt: Ptt, program: Path, start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(program)
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        process.stdin.write("often\n")
        process.stdin.flush()
    assert send(process, "memory") == "0"
    assert process.stdout.readline() == "0\n"
    assert facts_of(trace_dir)["attached"]["left"]
    assert threads_of(process.pid) == [str(process.pid)]


def test_a_program_may_enter_a_namespace_and_confine_itself(
    ptt: Ptt, program: Path, start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(program)
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        assert [send(process, call) for call in ("join", "memory")] == ["0", "0"]
        # The tracer makes no more such calls once a filter may forbid them.
        assert send(process, "confine") == "0"
        assert send(process, "memory") == str(errno.EINVAL)
    assert facts_of(trace_dir)["attached"]["left"]
    assert send(process, "memory") == "0"
    assert taken(ptt, trace_dir) == 4


def test_a_recording_ends_if_no_thread_can_be_created(
    ptt: Ptt, program: Path, start: Callable[..., Any], tmp_path: Path
) -> None:
    process = start(program)
    trace = tmp_path / "trace"
    with attached(ptt, "-o", trace, str(process.pid)) as recorder:
        assert [send(process, call) for call in ("memory", "processes")] == ["0", "0"]
        assert recorder.wait(timeout=60) == 0
        assert recorder.stderr is not None
        assert re.search(
            rf"^ptt: process {process.pid} ended the recording: it cannot restart the thread",
            recorder.stderr.read(), re.MULTILINE,
        )  # fmt: skip
    facts = facts_of(trace)
    assert facts["state"] == "complete"
    assert facts["attached"]["left"]
    assert taken(ptt, trace) == 1
    assert send(process, "wrong") == str(errno.EINVAL)


def test_programs_with_threads_get_the_usual_error(
    ptt: Ptt, program: Path, start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(program, "threads")
    refused = str(errno.EINVAL)
    assert send(process, "user") == refused
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        calls = ["user", "files", "memory"]
        assert [send(process, call) for call in calls] == [refused, "0", refused]
        assert len(threads_of(process.pid)) == 3
    assert taken(ptt, trace_dir) == len(calls)
    assert len(threads_of(process.pid)) == 2
