"""`ptt attach` records a running process and leaves the process as it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Ptt

# Threads that take a lock all the time, a thread that waits for a condition without signals, and
# a thread that would report an interrupted call.
PROGRAM = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/epoll.h>
    #include <sys/prctl.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t quiet = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    static void *work(void *unused)
    {
        for (;;) {
            pthread_mutex_lock(&busy);
            usleep(200);
            pthread_mutex_unlock(&busy);
            usleep(300);
        }
        return unused;
    }
    static void *wait_for(void *unused)
    {
        pthread_mutex_lock(&quiet);
        for (;;)
            pthread_cond_wait(&never, &quiet);
        return unused;
    }
    static void *events(void *unused)
    {
        struct epoll_event event;
        int fd = epoll_create1(0);
        for (;;)
            if (epoll_wait(fd, &event, 1, 100) != 0)
                puts("cut short");
        return unused;
    }
    static void say(const char *word)
    {
        puts(word);
        fflush(stdout);
    }
    static void call(const char *library)
    {
        void *opened = dlopen(library, RTLD_NOW);
        void (*called)(void) = (void (*)(void))dlsym(opened, "called");
        for (int i = 0; i < 300; i++) {
            called();
            usleep(1000);
        }
        say("called");
    }
    static void make_child(void)
    {
        int status;
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 1000; i++) {
                pthread_mutex_lock(&quiet);
                pthread_mutex_unlock(&quiet);
            }
            _exit(7);
        }
        waitpid(child, &status, 0);
        say(WEXITSTATUS(status) == 7 ? "child" : "bad child");
    }
    int main(int count, char **arguments)
    {
        void *(*const routines[])(void *) = {work, work, wait_for, events};
        char line[256];
        pthread_t thread;
        if (count > 1 && arguments[1][0] == 'n' && prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0))
            say("unknown");
        for (int i = 0; i < 4; i++)
            pthread_create(&thread, NULL, routines[i], NULL);
        say("ready");
        while (fgets(line, sizeof(line), stdin)) {
            if (line[0] == 'l')
                call("./called.so");
            else if (line[0] == 'f')
                make_child();
            else if (line[0] == 'x')
                exit(3);
        }
        for (;;)
            pause();
    }
"""
CALLED = """
    #include <pthread.h>
    static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER;
    void called(void)
    {
        pthread_mutex_lock(&late);
        pthread_mutex_unlock(&late);
    }
"""


def send(process: subprocess.Popen[str], word: str) -> str:
    """Send the program a line and return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def threads_of(pid: int) -> list[str]:
    return sorted(task.name for task in Path(f"/proc/{pid}/task").iterdir())


@contextmanager
def asleep(ptt: Ptt, *command: str | Path) -> Iterator[str]:
    """Run a program under a recorder; yield the program's id, and kill the program at the end."""
    with subprocess.Popen(
        ptt.command(*map(str, command)), env=ptt.environment(), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as recorder:  # fmt: skip
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "ready\n"
        children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
        pid = children.read_text().split()[0]
        yield pid
        os.kill(int(pid), signal.SIGKILL)
        recorder.communicate(timeout=60)


def events_of(ptt: Ptt, trace: Path) -> list[dict[str, Any]]:
    done = ptt("view", "--format", "jsonl", trace)
    return [json.loads(line) for line in done.stdout.splitlines()]


def facts_of(trace: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((trace / "info" / "session.json").read_text())
    return facts


@contextmanager
def attached(ptt: Ptt, *args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Attach, and interrupt the recording at the end."""
    command = ptt.command("attach", *map(str, args))
    with subprocess.Popen(
        command, env=ptt.environment(), text=True, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert "recording process" in process.stderr.readline()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def test_a_process_is_recorded_and_let_go_again_and_again(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], tmp_path: Path
) -> None:
    process = start(compile_c(PROGRAM))
    before = threads_of(process.pid)
    calls: list[int] = []
    pid = str(process.pid)
    for command in (["attach", "--for", "500ms", pid], ["record", "-p", pid, "-d", "500ms"]):
        trace = tmp_path / command[0]
        done = ptt(*command, "-o", trace)
        message = (
            rf"recorded \d+ events from 1 process, \d+ threads in {re.escape(str(trace))} \(0 lost"
        )
        assert re.search(message, done.stderr)
        assert threads_of(process.pid) == before
        report = json.loads(ptt("report", "--format", "json", trace).stdout)
        busy = next(o for o in report["objects"] if o["name"] == "busy")
        assert busy["holds"] > 20
        attached = facts_of(trace)["attached"]
        assert attached["left"]
        assert attached["refused"] == 0
        calls.append(attached["calls"])
        # check reports no threads that slept before the recording began
        assert ptt("check", trace).returncode == 0
    assert calls[0] == calls[1] > 4
    assert send(process, "fork") == "child"


def test_a_process_without_writable_code_is_recorded(
    ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """Services may lack this right: `MemoryDenyWriteExecute=` of systemd."""
    with subprocess.Popen(
        [compile_c(PROGRAM), "no code"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            process.kill()
            pytest.skip("this kernel cannot forbid it")
        for name in ("first", "second"):
            ptt("attach", "--for", "300ms", "-o", tmp_path / name, str(process.pid))
            assert facts_of(tmp_path / name)["attached"]["left"]
        assert send(process, "fork") == "child"
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert not [line for line in maps.splitlines() if line.split()[1].startswith("rwx")]
        process.kill()


def test_a_program_with_one_thread_is_recorded(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    """The first thread is the only thread that PTT can stop."""
    process = start(
        compile_c("""
        #include <pthread.h>
        #include <unistd.h>
        static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
        int main(void)
        {
            char line[64];
            if (write(1, "ready\\n", 6) != 6)
                return 1;
            while (read(0, line, sizeof(line)) > 0) {
                pthread_mutex_lock(&busy);
                pthread_mutex_unlock(&busy);
                if (write(1, "done\\n", 5) != 5)
                    return 1;
            }
            return 0;
        }
    """)
    )
    with attached(ptt, "-o", trace_dir, str(process.pid)):
        assert send(process, "") == "done"
    assert send(process, "") == "done"
    assert [e["event"] for e in events_of(ptt, trace_dir)].count("MUTEX_TAKEN") == 1


def test_older_threads_are_not_reported_to_begin(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))
    ptt("attach", "--for", "300ms", "-o", trace_dir, str(process.pid))
    names = {event["event"] for event in events_of(ptt, trace_dir)}
    assert "MUTEX_TAKEN" in names
    assert not names & {"THREAD_BEGIN", "PROCESS_START", "THREAD_END"}


def test_libraries_loaded_later_are_recorded(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], tmp_path: Path
) -> None:
    library = compile_c(CALLED, "-shared", "-fPIC")
    library.rename(tmp_path / "called.so")
    process = start(compile_c(PROGRAM))
    trace = tmp_path / "run.ptt"
    with attached(ptt, "-o", trace, str(process.pid)) as recorder:
        assert send(process, "load") == "called"
    assert recorder.returncode == 0
    late = [e for e in events_of(ptt, trace) if "called.so" in (e.get("site_name") or "")]
    late = late or [e for e in events_of(ptt, trace) if "called" in (e.get("site_name") or "")]
    assert len(late) > 100


def test_children_are_left_alone(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))
    with attached(ptt, "-o", trace_dir, str(process.pid)) as recorder:
        for _ in range(5):
            assert send(process, "fork") == "child"
    assert recorder.returncode == 0
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert [process["pid"] for process in stat["processes"]] == [process.pid]
    assert stat["lost"] == 0
    assert not [o for o in stat["objects"] if o["name"] == "quiet"]


def test_a_process_that_ends_leaves_a_whole_trace(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))
    with attached(ptt, "-o", trace_dir, str(process.pid)) as recorder:
        time.sleep(0.3)
        send(process, "x")
        assert recorder.wait(60) == 0
    assert process.wait(60) == 3
    assert facts_of(trace_dir)["state"] == "complete"
    stat = json.loads(ptt("stat", "--format", "json", trace_dir).stdout)
    assert stat["events"] > 20
    assert stat["lost"] == 0


def test_tracing_ends_when_the_recorder_dies(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))
    before = threads_of(process.pid)
    with attached(ptt, "-o", trace_dir, str(process.pid)) as recorder:
        recorder.kill()
        recorder.wait(timeout=60)
        # the process waits for a stopped recorder: much longer than this
        until = time.monotonic() + 10
        while threads_of(process.pid) != before and time.monotonic() < until:
            time.sleep(0.02)
        assert threads_of(process.pid) == before
    again = trace_dir.with_name("again.ptt")
    ptt("attach", "--for", "200ms", "-o", again, str(process.pid))
    assert facts_of(again)["attached"]["left"]
    ptt("recover", trace_dir, status=None)


def test_no_call_is_cut_short(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(PROGRAM))
    for _ in range(5):
        ptt("attach", "--for", "50ms", "-o", trace_dir, "--force", str(process.pid))
    assert send(process, "fork") == "child"  # and not "cut short"


def test_a_recorder_that_waits_with_level_0_is_used(
    ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    program = compile_c(PROGRAM)
    whole, part = tmp_path / "whole", tmp_path / "part"
    with asleep(ptt, "record", "-l", "0", "-o", whole, "--", program) as pid:
        _used_twice(ptt, pid, part)


def _used_twice(ptt: Ptt, pid: str, part: Path) -> None:
    maps = Path(f"/proc/{pid}/maps").read_text()
    for _ in range(2):
        done = ptt("attach", "--for", "500ms", "-o", part, "--force", pid)
        assert re.search(r"recorded \d+ events in ", done.stderr)
    # no library was loaded into the process
    assert Path(f"/proc/{pid}/maps").read_text().count(".so") == maps.count(".so")
    assert "=0,mutex=0" in ptt("level", pid).stdout
    events = events_of(ptt, part)
    assert len([e for e in events if e["event"] == "MUTEX_TAKEN"]) > 20
