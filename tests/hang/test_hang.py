"""Running processes that hang, inspected from outside."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace._binding import libc
from nptltrace.analysis.vocabulary.document_types import Hang
from nptltrace.errors import PttError
from nptltrace.hang.targets import process
from nptltrace.ui.shapes import fits
from tests.hang.looking import CASES, WAYS, asleep, running, threads_of
from tests.real.real import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_hangs_are_named(case: str, way: str, ptt: Ptt, program: Callable[[str], Path]) -> None:
    kind, waits, names = CASES[case]
    with running(program(way), case) as pid:
        answer = asleep(ptt, pid, threads_of(case))
    assert fits(Hang, answer)
    assert [finding["kind"] for finding in answer["findings"]] == [kind]
    assert {thread["waits_for"]["kind"] for thread in answer["threads"]} == waits
    named = {thread["waits_for"]["name"] for thread in answer["threads"]} - {""}
    assert named == names
    assert set(answer["findings"][0]["object_names"]) - {""} <= names
    # Each thread's site is the program's call, whatever library functions lie below it.
    for thread in answer["threads"]:
        assert any("waits.c:" in frame for frame in thread["stack"]), thread
    assert all("waits.c:" in site for site in answer["findings"][0]["sites"])


@pytest.mark.parametrize("case", ["mutexes", "stuck", "rwlock"])
def test_a_traced_program_waits_where_it_calls(
    case: str, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    """The tracer's functions, which pass the calls on, are never the site."""
    preload = ptt("config", "--preload").stdout.strip()
    handler = "PTHREAD_NPTL_TRACE=text:/dev/null:2"
    with running("env", f"LD_PRELOAD={preload}", handler, program("plain"), case) as pid:
        answer = asleep(ptt, pid, threads_of(case))
    assert [finding["kind"] for finding in answer["findings"]] == [CASES[case][0]]
    assert all("waits.c:" in site for site in answer["findings"][0]["sites"])


def test_a_ring_of_many_threads_is_found(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """When several processors read threads at once, every thread is there under its own name."""
    program = compile_c("""
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <stdio.h>
        enum { COUNT = 300 };
        static pthread_mutex_t locks[COUNT];
        static pthread_barrier_t all;
        static void *work(void *number)
        {
            long own = (long)number;
            char name[16];
            snprintf(name, sizeof(name), "of many %ld", own);
            pthread_setname_np(pthread_self(), name);
            pthread_mutex_lock(&locks[own]);
            pthread_barrier_wait(&all);
            pthread_mutex_lock(&locks[(own + 1) % COUNT]);
            return 0;
        }
        int main(void)
        {
            pthread_t thread;
            pthread_barrier_init(&all, 0, COUNT);
            for (long i = 0; i < COUNT; i++)
                pthread_create(&thread, 0, work, (void *)i);
            pthread_join(thread, 0);
        }
    """)
    with running(program) as pid:
        answer = asleep(ptt, pid, 301)
    assert [finding["kind"] for finding in answer["findings"]] == ["deadlock"]
    assert len(answer["findings"][0]["threads"]) == 300
    tid_of = {thread["name"]: thread["tid"] for thread in answer["threads"]}
    for thread in answer["threads"][1:]:
        number = int(thread["name"].removeprefix("of many "))
        assert thread["waits_for"]["owner_tid"] == tid_of[f"of many {(number + 1) % 300}"]


def test_a_process_whose_first_thread_ended_is_read(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """Another thread then shows the memory and modules of the process."""
    program = compile_c("""
        #include <pthread.h>
        pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
        static pthread_barrier_t both;
        static void *cross(void *mutex)
        {
            pthread_mutex_lock(mutex);
            pthread_barrier_wait(&both);
            pthread_mutex_lock(mutex == &left ? &right : &left);
            return mutex;
        }
        int main(void)
        {
            pthread_t threads[2];
            pthread_barrier_init(&both, 0, 2);
            pthread_create(&threads[0], 0, cross, &left);
            pthread_create(&threads[1], 0, cross, &right);
            pthread_exit(0);
        }
    """)
    with running(program) as pid:
        asleep(ptt, pid, 2, ended=1)
        done = ptt("hang", pid, status=1)
    assert f"thread {pid} (program) has ended" in done.stdout.replace(program.name, "program")
    assert "waits for mutex left, held by" in done.stdout
    assert "cross+0x" in done.stdout


def test_a_once_function_that_waits_for_a_caller_deadlocks(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """No word of the object says which thread runs the function."""
    program = compile_c(
        """
        #include <pthread.h>
        pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
        pthread_once_t ready = PTHREAD_ONCE_INIT;
        static pthread_barrier_t both;
        static void initialise(void)
        {
            pthread_barrier_wait(&both);
            pthread_mutex_lock(&registry);
            pthread_mutex_unlock(&registry);
        }
        static void *load(void *unused)
        {
            pthread_once(&ready, initialise);
            return unused;
        }
        int main(void)
        {
            pthread_t thread;
            pthread_barrier_init(&both, 0, 2);
            pthread_create(&thread, 0, load, 0);
            pthread_mutex_lock(&registry);
            pthread_barrier_wait(&both);
            pthread_once(&ready, initialise);
            return 0;
        }
    """,
        "-O1",
        "-g",
        "-fno-optimize-sibling-calls",
    )
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert finding["kind"] == "deadlock"
    assert {*finding["object_names"]} == {"registry", "ready"}
    assert {site.partition("+")[0] for site in finding["sites"]} == {"initialise", "main"}


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-static")])
def test_a_once_function_that_calls_once_again_deadlocks(
    flags: tuple[str, ...], ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """With optimization, this is a tail call: the function has no frame then."""
    program = compile_c(
        """
        #include <pthread.h>
        pthread_once_t ready = PTHREAD_ONCE_INIT;
        static void initialise(void)
        {
            pthread_once(&ready, initialise);
        }
        int main(void)
        {
            return pthread_once(&ready, initialise);
        }
    """,
        *flags,
    )
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 1)["findings"]
    assert (finding["kind"], finding["object_names"]) == ("self-deadlock", ["ready"])


def test_two_once_functions_that_need_each_other_deadlock(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """A waiting thread's stack holds the call's arguments as well."""
    program = compile_c(
        """
        #include <pthread.h>
        #include <unistd.h>
        pthread_once_t net, tls;
        static void run(pthread_once_t *control, void (*function)(void))
        {
            pthread_once(control, function);
        }
        static void needs_net(void);
        static void needs_tls(void)
        {
            usleep(50000);
            run(&tls, needs_net);
        }
        static void needs_net(void)
        {
            usleep(50000);
            run(&net, needs_tls);
        }
        static void *begin(void *unused)
        {
            run(&net, needs_tls);
            return unused;
        }
        int main(void)
        {
            pthread_t other;
            pthread_create(&other, 0, begin, 0);
            run(&tls, needs_net);
            return 0;
        }
    """,
        "-O0",
    )
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 2)["findings"]
    assert (finding["kind"], sorted(finding["object_names"])) == ("deadlock", ["net", "tls"])


def test_a_word_of_all_ones_is_no_robust_mutex(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """Rust's parked threads sleep on such a word."""
    program = compile_c("""
        #include <linux/futex.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static unsigned parked[16] = { [4] = -1 };
        int main(void)
        {
            for (;;)
                syscall(SYS_futex, &parked[4], FUTEX_WAIT_BITSET_PRIVATE, -1, 0, 0, -1);
        }
    """)
    with running(program) as pid:
        answer = asleep(ptt, pid, 1)
    assert answer["threads"][0]["waits_for"]["kind"] == "futex"
    assert [finding["kind"] for finding in answer["findings"]] == ["stuck"]


def test_a_deadlock_of_two_processes_is_found(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    program = compile_c("""
        #include <pthread.h>
        #include <sys/mman.h>
        #include <unistd.h>
        struct shared { pthread_mutex_t mutexes[2]; pthread_barrier_t both; };
        int main(void)
        {
            struct shared *shared = mmap(0, sizeof(*shared), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            pthread_mutexattr_t attr;
            pthread_barrierattr_t of_both;
            int first;
            pthread_mutexattr_init(&attr);
            pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
            pthread_barrierattr_init(&of_both);
            pthread_barrierattr_setpshared(&of_both, PTHREAD_PROCESS_SHARED);
            pthread_barrier_init(&shared->both, &of_both, 2);
            pthread_mutex_init(&shared->mutexes[0], &attr);
            pthread_mutex_init(&shared->mutexes[1], &attr);
            first = fork() == 0;
            pthread_mutex_lock(&shared->mutexes[first]);
            pthread_barrier_wait(&shared->both);
            pthread_mutex_lock(&shared->mutexes[!first]);
            return 0;
        }
    """)
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 1)["findings"]
        (other,) = [tid for tid in finding["threads"] if str(tid) != pid]
        os.kill(other, signal.SIGKILL)
    assert finding["kind"] == "deadlock"
    assert len(finding["threads"]) == 2
    assert f"held by thread {other} " in finding["message"]
    assert f" of process {other} in main+" in finding["message"]


@pytest.mark.skipif(
    os.getuid() != 0, reason="other users may have processes that only root can inspect"
)
def test_a_barrier_that_no_process_reaches_is_stuck(
    ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    """Memory that may be shared but is not: with a child that maps it too, nothing is certain."""
    program = compile_c("""
        #include <pthread.h>
        #include <sys/mman.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int count, char **arguments)
        {
            pthread_barrier_t *both = mmap(0, sizeof(*both), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            pthread_barrierattr_t attr;
            (void)arguments;
            pthread_barrierattr_init(&attr);
            pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
            pthread_barrier_init(both, &attr, 2);
            if (!fork()) {
                alarm(60);
                return count > 1 && pause();
            }
            if (count == 1)
                wait(0);
            pthread_barrier_wait(both);
            return 0;
        }
    """)
    with running(program) as pid:
        (finding,) = asleep(ptt, pid, 1)["findings"]
    assert finding["kind"] == "stuck"
    with running(program, "child") as pid:
        answer = asleep(ptt, pid, 1)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    assert answer["findings"] == []
    os.kill(int(children[0]), signal.SIGKILL)


def test_owners_are_named(ptt: Ptt, program: Callable[[str], Path]) -> None:
    with running(program("plain"), "mutexes") as pid:
        answer = asleep(ptt, pid, 3)
    locks = {
        t["tid"]: t["waits_for"]["owner_tid"]
        for t in answer["threads"]
        if t["waits_for"]["kind"] == "mutex"
    }
    assert len(locks) == 2
    assert {owner: tid for tid, owner in locks.items()} == locks


@pytest.mark.parametrize("way", WAYS)
def test_a_thread_that_may_continue_is_no_finding(
    way: str, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    with running(program(way), "idle") as pid:
        answer = asleep(ptt, pid, 3)
        text = ptt("hang", pid).stdout
    assert answer["findings"] == []
    kinds = sorted(thread["waits_for"]["kind"] for thread in answer["threads"])
    assert kinds == ["condition", "join", "poll"]
    assert "nothing found: 1 asleep in system calls, 2 waiting for others" in text


def test_a_contended_program_has_no_findings(ptt: Ptt, compile_c: Callable[..., Path]) -> None:
    """Locks change hands all the time: at no moment is there a deadlock."""
    program = compile_c("""
        #include <pthread.h>
        static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
        static void *work(void *argument)
        {
            for (unsigned n = 0;; n++) {
                pthread_mutex_lock(&locks[0]);
                pthread_mutex_lock(&locks[1]);
                pthread_mutex_unlock(&locks[1]);
                pthread_mutex_unlock(&locks[0]);
                pthread_mutex_lock(&locks[1]);
                pthread_mutex_unlock(&locks[1]);
            }
            return argument;
        }
        int main(void)
        {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], 0, work, 0);
            pthread_join(threads[0], 0);
        }
    """)
    with running(program) as pid:
        for _ in range(10):
            assert "nothing found" in ptt("hang", pid).stdout


GONE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <fcntl.h>
#ifdef PLUGIN
static pthread_mutex_t of_plugin = PTHREAD_MUTEX_INITIALIZER;
void take(void) { pthread_mutex_lock(&of_plugin); __asm__ volatile(""); }
#else
static void *run(void *take) { ((void (*)(void))take)(); return take; }
int main(int count, char **path)
{
	char memory[32];
	int fd = memfd_create("plugin", 0);
	pthread_t thread;

	(void)count;
	sendfile(fd, open(path[1], O_RDONLY), NULL, 1 << 20);
	snprintf(memory, sizeof(memory), "/proc/self/fd/%d", fd);
	run(dlsym(dlopen(memory, RTLD_NOW), "take"));
	pthread_create(&thread, NULL, run, dlsym(dlopen(memory, RTLD_NOW), "take"));
	return pthread_join(thread, NULL);
}
#endif
"""


def test_deleted_files_still_have_names(
    ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """The program is rebuilt while it hangs; one of its libraries existed only in memory."""
    plugin = tmp_path / "plugin.so"
    compile_c(GONE, "-g", "-DPLUGIN", "-shared", "-fPIC").rename(plugin)
    with running(compile_c(GONE, "-g", "-ldl"), plugin) as pid:
        asleep(ptt, pid, 2)
        program = Path(f"/proc/{pid}/exe").readlink()
        program.unlink()
        shutil.copy("/bin/true", program)
        text = ptt("hang", pid, status=None).stdout
    assert re.search(r"waits for the end of thread .*\n +main\+0x\w+ \(program.c:\d+\)\n", text)
    if os.geteuid() == 0:  # other users may not open mapped files
        assert "waits for mutex of_plugin, held by" in text
        assert re.search(r"\n +take\+0x\w+ \(program.c:11\)\n", text)


def test_the_text_names_waits_and_holders(ptt: Ptt, program: Callable[[str], Path]) -> None:
    with running(program("plain"), "mutexes") as pid:
        asleep(ptt, pid, 3)
        text = ptt("hang", pid, status=1).stdout
        whole = ptt("hang", "--stacks", pid, status=1).stdout
    assert f"error: deadlock in process {pid}" in text
    assert "waits for mutex left, held by thread" in text
    assert "cross+0x" in text
    assert "start_thread" not in text
    assert len(whole.splitlines()) > len(text.splitlines())


def test_a_missing_process_is_one_clear_line(ptt: Ptt) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    message = ptt("hang", str(process.pid), status=2).stderr
    assert message == f"ptt: error: there is no process {process.pid}\n"


@pytest.mark.parametrize(
    ("scope", "user", "message"),
    [
        (
            "1\n",
            1000,
            "kernel.yama.ptrace_scope is 1; run ptt as root, or allow it by `sysctl kernel",
        ),
        (
            "2\n",
            1000,
            "kernel.yama.ptrace_scope is 2; run ptt as root, or allow it by `sysctl kernel",
        ),
        ("3\n", 1000, "kernel.yama.ptrace_scope is 3: nobody may, until the system starts anew"),
        ("3\n", 0, "kernel.yama.ptrace_scope is 3: nobody may, until the system starts anew"),
        ("0\n", 1001, "it belongs to user 1000; run ptt as that user or as root"),
        ("0\n", 0, "the kernel refuses it to root as well"),
        (
            "0\n",
            1000,
            "does not let itself be looked into (prctl PR_SET_DUMPABLE); run ptt as root",
        ),
        (None, 1000, "does not let itself be looked into (prctl PR_SET_DUMPABLE); run ptt as root"),
    ],
)
def test_the_reason_for_a_refused_look_is_given(
    scope: str | None, user: int, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "ptrace_scope"
    if scope is not None:
        place.write_text(scope, encoding="ascii")

    def refuse(path: Path) -> bytes:
        raise PermissionError(path)

    monkeypatch.setattr(process, "_YAMA", place)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    status = (
        Path("/proc/self/status")
        .read_text(encoding="utf-8")
        .replace(f"Uid:\t{os.getuid()}", "Uid:\t1000")
    )
    monkeypatch.setattr(process, "_read", lambda _: status)
    with pytest.raises(PttError, match=re.escape(message)) as refused:
        process.Process(os.getpid())
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into all processes")
def test_a_process_of_another_user_is_refused(ptt: Ptt) -> None:
    assert "cannot look into process 1: it belongs to user 0" in ptt("hang", "1", status=2).stderr


def test_a_stopped_process_is_said_to_be_stopped(ptt: Ptt) -> None:
    """A signal or a debugger stopped the process."""
    with running("sleep", "60") as pid:
        asleep(ptt, pid, 1)
        os.kill(int(pid), signal.SIGSTOP)
        wait_until(lambda: _state(pid) == "T", "it is stopped")
        text = " ".join(ptt("hang", pid).stdout.split())
        (thread,) = asleep(ptt, pid, 1)["threads"]
        os.kill(int(pid), signal.SIGCONT)
        assert libc.ptrace(0x4206, int(pid)) == libc.ptrace(0x4207, int(pid)) == 0
        wait_until(lambda: _state(pid) == "t", "it is traced")
        traced = ptt("hang", pid).stdout
    assert "is stopped by a signal in clock_nanosleep: `fg` or SIGCONT" in text
    assert "nothing found: 1 stopped" in text
    assert thread["state"] == "stopped"
    assert f"is stopped by debugger {os.getpid()} in " in traced


def _state(pid: str) -> str:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return status.partition("State:")[2].split()[0]
