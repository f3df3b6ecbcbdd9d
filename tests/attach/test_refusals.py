"""Processes that `ptt attach` refuses: one line, status 2, and the process is unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace._binding import libpttinject
from nptltrace.attach.recording import AttachOptions, record
from nptltrace.errors import PttError
from nptltrace.recording.settings.levels import Levels
from nptltrace.recording.settings.options import BufferOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt, Result

SLEEPS = """
    #include <stdio.h>
    #include <unistd.h>
    int main(void)
    {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
"""
STRICT = """
    #include <linux/seccomp.h>
    #include <stdio.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    int main(void)
    {
        char byte;
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        write(1, "ready\\n", 6);
        return (int)read(0, &byte, 1);
    }
"""
BUSY = """
    #include <stdio.h>
    #include <unistd.h>
    int main(void)
    {
        puts("ready");
        fflush(stdout);
        usleep(300000);
        for (volatile int i = 0;; i++)
            ;
    }
"""
# The thread sleeps inside malloc() itself.
INSIDE = """
    #include <stdio.h>
    #include <unistd.h>
    void *malloc(unsigned long size)
    {
        static char memory[1 << 20];
        static unsigned long used;
        if (size == 4711)
            for (;;)
                pause();
        used += (size + 15) & ~15ul;
        return memory + used - ((size + 15) & ~15ul);
    }
    void free(void *unused) { (void)unused; }
    int main(void)
    {
        puts("ready");
        fflush(stdout);
        return malloc(4711) == 0;
    }
"""
# Sleeps in a signal handler that interrupted other code.
HANDLER = """
    #include <signal.h>
    #include <stdio.h>
    #include <unistd.h>
    static void sleeps(int unused)
    {
        (void)unused;
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    int main(void)
    {
        signal(SIGUSR1, sleeps);
        raise(SIGUSR1);
    }
"""
FIRST_ENDS = """
    #include <pthread.h>
    #include <stdio.h>
    #include <unistd.h>
    static void *stays(void *unused)
    {
        for (;;)
            pause();
        return unused;
    }
    int main(void)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, stays, NULL);
        puts("ready");
        fflush(stdout);
        pthread_exit(NULL);
    }
"""
TRACER = """
import ctypes, sys, time
ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None)
print('seized', flush=True)
time.sleep(60)
"""


def refused(ptt: Ptt, pid: int, trace: Path, *options: str) -> Result:
    done = ptt("attach", *options, "--for", "100ms", "-o", trace, str(pid), status=2)
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ptt: error: ")
    assert not trace.exists()
    return done


@pytest.mark.parametrize(
    "kind",
    [
        (SLEEPS, "-static", "linked statically"),
        (SLEEPS, "-fsanitize=address", "runs under a sanitizer"),
        (STRICT, "-O1", "seccomp, strict mode"),
    ],
    ids=["static", "sanitizer", "strict"],
)
def test_unsafe_programs_are_refused(
    ptt: Ptt,
    compile_c: Callable[..., Path],
    start: Callable[..., Any],
    trace_dir: Path,
    kind: tuple[str, str, str],
) -> None:
    source, flag, message = kind
    process = start(compile_c(source, flag))
    assert message in refused(ptt, process.pid, trace_dir).stderr
    assert process.poll() is None


@pytest.mark.parametrize("source", [BUSY, INSIDE, HANDLER], ids=["busy", "malloc", "handler"])
def test_a_process_without_a_safely_sleeping_thread_is_refused(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path,
    source: str,
) -> None:  # fmt: skip
    process = start(compile_c(source, "-fno-builtin"))
    message = refused(ptt, process.pid, trace_dir, "--wait", "300ms").stderr
    assert "no thread slept in a call" in message
    assert process.poll() is None


def test_a_stopped_process_is_refused(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(SLEEPS))
    os.kill(process.pid, signal.SIGSTOP)
    assert "it is stopped" in refused(ptt, process.pid, trace_dir).stderr


def test_an_ended_process_is_refused(ptt: Ptt, trace_dir: Path) -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert "left alone: it is zombie" in refused(ptt, process.pid, trace_dir).stderr
    process.wait()


def test_a_traced_process_is_refused(
    ptt: Ptt, compile_c: Callable[..., Path], start: Callable[..., Any], trace_dir: Path
) -> None:
    process = start(compile_c(SLEEPS))
    command = [sys.executable, "-c", TRACER, str(process.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == "seized\n"
        assert f"process {tracer.pid} traces it" in refused(ptt, process.pid, trace_dir).stderr
        tracer.kill()


def test_a_recorded_process_is_refused(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path, tmp_path: Path
) -> None:
    command = ptt.command("record", "-o", str(tmp_path / "own"), "--", str(compile_c(SLEEPS)))
    with subprocess.Popen(
        command, env=ptt.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "ready\n"
        children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
        pid = int(children.read_text().split()[0])
        assert "is being recorded already, into" in refused(ptt, pid, trace_dir).stderr
        os.kill(pid, signal.SIGKILL)


def test_a_missing_process_is_refused(ptt: Ptt, trace_dir: Path) -> None:
    assert "no process" in refused(ptt, 2**22 - 1, trace_dir).stderr


@pytest.mark.usefixtures("native_in_process")
def test_an_ended_thread_is_no_error_of_permission(
    compile_c: Callable[..., Path], start: Callable[..., Any]
) -> None:
    process = start(compile_c(FIRST_ENDS))
    request = libpttinject.Request(pid=process.pid, tid=process.pid)
    assert libpttinject.inject(request) is None
    assert libpttinject.registers(request) is None


@pytest.mark.usefixtures("native_in_process")
def test_a_process_that_ends_too_early_leaves_no_trace(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    options = AttachOptions(child.pid, tmp_path / "run.ptt", Levels(2), BufferOptions())
    entrance: Any = None
    with pytest.raises(PttError, match=f"process {child.pid}: it has ended"):
        record(options, entrance, lambda: False, lambda _: None, lambda _: False)
    assert list(tmp_path.iterdir()) == []
