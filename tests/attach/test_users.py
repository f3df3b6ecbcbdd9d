"""Other users' processes, an ordinary user's own processes, and processes in a PID namespace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Ptt

NOBODY = 65534
PYTHON = "/usr/bin/python3"
NAMESPACE = ("unshare", "-Ur", "--pid", "--fork", "--mount", "--mount-proc")
# With an argument, the program gives up being root, as servers do: then only root may inspect it.
WORKS = """
    #define _GNU_SOURCE
    #include <grp.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
    static pthread_barrier_t both;
    static void *work(void *unused)
    {
        for (;; usleep(300)) {
            pthread_mutex_lock(&busy);
            usleep(200);
            pthread_mutex_unlock(&busy);
        }
        return unused;
    }
    static void *cross(void *first)
    {
        pthread_mutex_lock(first);
        pthread_barrier_wait(&both);
        pthread_mutex_lock(first == &left ? &right : &left);
        return NULL;
    }
    int main(int count, char **arguments)
    {
        pthread_t thread;
        int user = count > 1 ? atoi(arguments[1]) : 0;
        if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
            return 1;
        pthread_barrier_init(&both, NULL, 2);
        pthread_create(&thread, NULL, cross, &left);
        pthread_create(&thread, NULL, cross, &right);
        for (int i = 0; i < 2; i++)
            pthread_create(&thread, NULL, work, NULL);
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")


def may(*command: str | Path) -> bool:
    """Return whether a command runs successfully here."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def of_nobody(*command: str | Path) -> list[str]:
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return [os.fspath(word) for word in words]


@contextmanager
def works(*command: str | Path) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.send_signal(signal.SIGKILL)


@contextmanager
def inside(parent: int) -> Iterator[int]:
    """Yield the process that a namespace's creator started inside, by its pid outside."""
    pid = int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may write to."""
    path = Path(tempfile.mkdtemp(prefix="ptt-test-", dir="/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def is_recorded(ptt: Ptt, trace: Path) -> None:
    """Assert that the trace has the program's events, with names."""
    report = json.loads(ptt("report", "--format", "json", trace).stdout)
    assert next(o for o in report["objects"] if o["name"] == "busy")["holds"] > 10
    facts: dict[str, Any] = json.loads((trace / "info" / "session.json").read_text())
    assert facts["attached"]["left"]


@as_root
def test_root_attaches_to_a_process_that_gave_up_being_root(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path
) -> None:
    if not may(*of_nobody("test", "-r", ptt.native / "lib" / "libnptltrace.so")):
        pytest.skip("other users cannot read the tracer here")
    with works(compile_c(WORKS), str(NOBODY)) as pid:
        ptt("attach", "--for", "500ms", "-o", trace_dir, str(pid))
        assert "deadlock" in ptt("hang", str(pid), status=1).stdout
    is_recorded(ptt, trace_dir)


@as_root
def test_an_ordinary_user_attaches_to_an_own_process(
    ptt: Ptt, compile_c: Callable[..., Path], place: Path
) -> None:
    environment = ptt.environment({"HOME": str(place)})
    environment["PYTHONPATH"] += f":{sysconfig.get_path('purelib')}"
    library = ptt.native / "lib" / "libnptltrace.so"
    imports = ("env", f"PYTHONPATH={environment['PYTHONPATH']}", PYTHON, "-c", "import rich")
    if not may(*of_nobody("test", "-r", library)) or not may(*of_nobody(*imports)):
        pytest.skip("other users cannot run ptt here")
    program = place / "program"
    shutil.copy(compile_c(WORKS), program)

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            of_nobody(PYTHON, "-m", "nptltrace", *args), env=environment, text=True,
            capture_output=True, check=False, cwd=place,
        )  # fmt: skip

    with works(*of_nobody(program)) as pid:
        found = run("hang", str(pid))
        assert (found.returncode, "deadlock" in found.stdout) == (1, True), found.stderr
        done = run("attach", "--for", "500ms", "-o", "trace", str(pid))
        assert done.returncode == 0, done.stderr
    is_recorded(ptt, place / "trace")
    if may(*of_nobody(*NAMESPACE, "true")):
        with works(*of_nobody(*NAMESPACE, program)) as parent, inside(parent) as pid:
            found = run("hang", str(pid))
            assert (found.returncode, "deadlock" in found.stdout) == (1, True), found.stderr
            done = run("attach", "--for", "500ms", "-o", "inner", str(pid))
            assert done.returncode == 0, done.stderr
        is_recorded(ptt, place / "inner")
    with works(program, str(NOBODY)) as pid:
        for command in ("hang", "attach"):
            done = run(command, str(pid))
            assert done.returncode == 2
            assert "it does not let itself be looked into" in done.stderr
            assert "run ptt as root" in done.stderr
    with works(program) as pid:
        for command in ("hang", "attach"):
            done = run(command, str(pid))
            assert done.returncode == 2
            assert "it belongs to user 0; run ptt as that user or as root" in done.stderr


def test_a_process_in_a_pid_namespace_is_recorded(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path
) -> None:
    if not may(*NAMESPACE, "true"):
        pytest.skip("no namespaces can be made here")
    with works(*NAMESPACE, compile_c(WORKS)) as parent, inside(parent) as pid:
        ptt("attach", "--for", "500ms", "-o", trace_dir, str(pid))
    is_recorded(ptt, trace_dir)


def test_ptt_works_inside_a_pid_namespace(
    ptt: Ptt, compile_c: Callable[..., Path], trace_dir: Path
) -> None:
    if not may(*NAMESPACE, "true"):
        pytest.skip("no namespaces can be made here")
    script = '"$1" & shift; "$@" $!; status=$?; kill -9 $!; exit $status'
    program = compile_c(WORKS)

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*NAMESPACE, "sh", "-c", script, "sh", program, *ptt.command(*args)],
            env=ptt.environment(), capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    done = run("attach", "--for", "500ms", "-o", str(trace_dir))
    assert done.returncode == 0, done.stderr
    is_recorded(ptt, trace_dir)
    found = run("hang", "--watch", "500ms")
    assert (found.returncode, "deadlock" in found.stdout) == (1, True), found.stderr
