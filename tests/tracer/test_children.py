"""fork, vfork, clone, exec, spawn: each child is traced as itself; the program does not notice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import hooked_functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Compiler
    from tests.tracer.counted import Runner

EXECS = [
    "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "execveat", "fexecve",
    "syscall_execve",
]  # fmt: skip
# Programs linked before glibc 2.15 use the old symbol version.
OLD_SPAWN = """
#define _GNU_SOURCE
#include <spawn.h>
#include <sys/wait.h>
__asm__(".symver posix_spawn, posix_spawn@VERSION");
int main(int argc, char **argv)
{
	char *arguments[] = {argv[1], NULL}, *env[] = {NULL};
	int status = 0;
	pid_t child;

	if (argc < 2 || posix_spawn(&child, argv[1], NULL, NULL, arguments, env))
		return 127;
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}
"""
LOCK = ["MUTEX_TAKEN", "MUTEX_FREE"]
# The C library takes a child of clone() for its parent, also when it checks who holds a mutex.
STALE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <threads.h>
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static mtx_t other;
static int child(void *arg)
{
	(void)arg;
	return pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex) ||
		mtx_init(&other, mtx_plain | mtx_recursive) || mtx_lock(&other) || mtx_unlock(&other);
}
int main(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status = 1;

	waitpid(clone(child, stack + sizeof(stack), SIGCHLD, NULL), &status, 0);
	return status != 0;
}
"""


# Functions of pthread_atfork() that fork themselves: before the fork, after it, and in the child.
# A constructor registers the first functions.
NESTED = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int depth, wrong;
/* For SIGUSR1, which is always blocked, and SIGUSR2, which is not. */
static void look(void)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	wrong += !sigismember(&now, SIGUSR1) || sigismember(&now, SIGUSR2);
}
static void fork_again(void)
{
	int status = 1;
	pid_t child;

	look();
	if (depth)
		return;
	depth++;
	child = fork();
	look();
	if (child == 0)
		_exit(wrong);
	depth--;
	wrong += waitpid(child, &status, 0) != child || status;
}
static __attribute__((constructor(101))) void begin(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigprocmask(SIG_BLOCK, &one, NULL);
	pthread_atfork(fork_again, fork_again, fork_again);
}
int main(void)
{
	int status = 1;
	pid_t child;

	pthread_atfork(fork_again, fork_again, fork_again);
	child = fork();
	look();
	if (child == 0)
		_exit(wrong);
	waitpid(child, &status, 0);
	return wrong || status;
}
"""


def test_atfork_functions_may_fork(traced: Runner, compile_c: Compiler) -> None:
    """The tracer leaves the signal mask unchanged, and each child is recorded as itself."""
    program = compile_c(NESTED, name="nested")
    assert traced.plain(program).status == 0
    run = traced(program, level=2)
    assert run.status == 0
    # two children before the fork, two after it, two in the child, and the child itself
    assert len(run.processes) == 1 + 6 + 1
    forks = [event for process in run.processes for event in process.of("PROCESS_FORK")]
    assert len(forks) == len(run.processes) - 1
    for process in run.processes:
        assert {event.tid for event in process.events} == {process.pid}


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone", "syscall_clone"])
@pytest.mark.parametrize("level", [0, 2])
def test_children_of_fork_and_clone_have_their_own_events(
    how: str, level: int, traced: Runner, program: Callable[[str], Path]
) -> None:
    plain = traced.plain(program("children"), how, "20")
    run = traced(program("children"), how, "20", level=level)
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, 0)
    parent, *children = run.processes
    assert len(children) == 20
    if level == 0:
        assert not any(process.events for process in run.processes)
        return
    forks = parent.of("PROCESS_FORK")
    assert [event.fields["child"] for event in forks] == [child.pid for child in children]
    kind = {"fork": 0, "_Fork": 1, "clone": 3, "syscall_clone": 4}[how]
    assert {event.fields["kind"] for event in forks} == {kind}
    # functions of pthread_atfork() run if they exist, and in the child's own name
    before = ["RWLOCK_TAKEN_WRITE", "RWLOCK_FREE"] if how == "fork" else []
    after = ["PROCESS_EXIT"] if how == "fork" else []
    for child in children:
        assert [event.name for event in child.events] == ["PROCESS_START", *before, *LOCK, *after]
        assert {event.tid for event in child.events} == {child.pid}
        assert child.events[0].fields["ppid"] == parent.pid
    assert all(event.tid != child.pid for event in parent.events for child in children)


def test_a_child_taken_for_its_parent_releases_its_mutex(
    traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(STALE), level=2)
    names = [event.name for event in run.processes[1].events]
    assert (run.status, names) == (0, ["PROCESS_START", *LOCK, "MUTEX_INIT", *LOCK])


def test_child_of_a_bare_clone_instruction_records_nothing(
    traced: Runner, program: Callable[[str], Path]
) -> None:
    run = traced(program("children"), "bare_clone", "5")
    assert (run.stdout, run.stderr, run.status) == ("done\n", "", 0)
    # the child records nothing, and above all nothing in its parent's name
    parent = run.processes[0]
    threads = {event.tid for event in parent.of("THREAD_BEGIN")} | {parent.pid}
    assert {event.tid for event in parent.events} == threads


def test_old_spawn_takes_a_script_without_a_first_line(
    traced: Runner, compile_c: Compiler, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    for version, status in (("GLIBC_2.2.5", 5), ("GLIBC_2.15", 127)):
        spawner = compile_c(OLD_SPAWN.replace("VERSION", version), name=f"spawn-{version}")
        for run in (traced.plain(spawner, script), traced(spawner, script)):
            assert run.status == status
    assert run.processes[0].names()["PROCESS_SPAWN"] == (status != 127)


# C library functions that create a child internally, so no hook sees the child.
INSIDE = """
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int by_popen(void)
{
    char word[16] = "";
    FILE *file = popen("echo word", "r");
    int good = file && fgets(word, sizeof(word), file) && strcmp(word, "word\\n") == 0;
    return pclose(file) || !good;
}
static int by_forkpty(void)
{
    int master, status = 1;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child == 0)
        execl("/bin/true", "true", NULL);
    return waitpid(child, &status, 0) != child || status;
}
static int by_daemon(void)
{
    char end;
    int alive[2], result;
    pid_t child;
    if (pipe(alive) || (child = fork()) < 0)
        return 1;
    if (child == 0) {
        result = daemon(1, 1);
        _exit(result);
    }
    close(alive[1]);
    /* until the last process with the other end has ended */
    return read(alive[0], &end, 1) || waitpid(child, &result, 0) != child || result;
}
int main(int argc, char **argv)
{
    pid_t older = fork(); /* another child, which stays until the end */
    int result = 1;
    if (older == 0)
        for (;;)
            pause();
    if (argc > 1 && strcmp(argv[1], "system") == 0)
        result = system("exit 7") >> 8 != 7;
    if (argc > 1 && strcmp(argv[1], "popen") == 0)
        result = by_popen();
    if (argc > 1 && strcmp(argv[1], "forkpty") == 0)
        result = by_forkpty();
    if (argc > 1 && strcmp(argv[1], "daemon") == 0)
        result = by_daemon();
    kill(older, SIGKILL);
    waitpid(older, NULL, 0);
    return result;
}
"""


@pytest.mark.parametrize("how", ["system", "popen", "forkpty", "daemon"])
def test_children_created_inside_the_c_library_are_recorded(
    how: str, traced: Runner, compile_c: Compiler
) -> None:
    program = compile_c(INSIDE, "-lutil")
    assert traced.plain(program, how).status == 0
    run = traced(program, how)
    assert run.status == 0
    parent, *others = run.processes
    forked = [event.fields["child"] for event in parent.of("PROCESS_FORK")]
    made = {process.pid: process for process in others if process.pid != forked[0]}
    if how == "daemon":  # a child of the program becomes the daemon's parent
        between = made.pop(forked[1])
        (daemon,) = between.of("PROCESS_FORK")
        assert [daemon.fields["child"]] == list(made)
        return
    (child,) = made.values()
    assert child.events[0].fields["ppid"] == parent.pid
    if how == "forkpty":
        assert forked[1:] == [child.pid]
        return
    (spawned,) = parent.of("PROCESS_SPAWN")
    listed = how == "popen" and Path("/proc/thread-self/children").exists()
    assert spawned.fields["child"] == (child.pid if listed else 0)


# Words that need a shell, and words that do not.
WORDS = """
#include <stdio.h>
#include <string.h>
#include <wordexp.h>

int main(int argc, char **argv)
{
    wordexp_t words;

    return wordexp(argv[1], &words, 0) || strcmp(words.we_wordv[0], argv[2]) != 0;
}
"""


@pytest.mark.parametrize(("word", "result", "children"), [("$(echo a)", "a", 1), ("b", "b", 0)])
def test_children_of_wordexp_are_recorded_and_not_reported(
    word: str, result: str, children: int, traced: Runner, compile_c: Compiler
) -> None:
    run = traced(compile_c(WORDS), word, result)
    assert run.status == 0
    parent, *others = run.processes
    assert [process.events[0].fields["ppid"] for process in others] == [parent.pid] * children
    assert not parent.of("PROCESS_FORK") + parent.of("PROCESS_SPAWN")


def test_children_are_recorded_with_the_proc_of_another_namespace(
    traced: Runner, compile_c: Compiler
) -> None:
    """With the /proc of another PID namespace, a process cannot find its child's id there."""
    own_ids = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*own_ids, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no PID namespaces here")
    run = traced(*own_ids, compile_c(INSIDE, "-lutil"), "popen")
    assert run.status == 0
    spawned = [event for process in run.processes for event in process.of("PROCESS_SPAWN")]
    assert [event.fields["child"] for event in spawned] == [0]


@pytest.mark.parametrize("how", EXECS)
def test_exec_starts_a_new_image_with_its_own_events(
    how: str, traced: Runner, program: Callable[[str], Path]
) -> None:
    plain = traced.plain(program("children"), how)
    run = traced(program("children"), how)
    assert run.stderr == plain.stderr
    if how in ("execv", "execvp", "execl", "execlp"):  # these calls pass on the test's environment
        assert run.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
    else:
        assert run.stdout == plain.stdout
    _parent, child, executed = run.processes
    assert child.events[-1].name == "PROCESS_EXEC"
    assert executed.pid == child.pid
    assert executed.names()["MUTEX_TAKEN"] == 1


def test_failed_exec(traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), "failed")
    run = traced(program("children"), "failed", level=2)
    assert (run.stdout, run.status) == (plain.stdout, plain.status)
    assert run.only.domain("") == [
        "PROCESS_START", "PROCESS_EXEC", "PROCESS_EXEC_FAILED", *LOCK, "PROCESS_EXIT",
    ]  # fmt: skip


def test_vfork_reports_each_child_once(traced: Runner, program: Callable[[str], Path]) -> None:
    plain = traced.plain(program("children"), "vfork", "5")
    run = traced(program("children"), "vfork", "5")
    assert (run.stdout, run.stderr, run.status) == (plain.stdout, plain.stderr, 0)
    parent, *children = run.processes
    assert len(children) == 5
    forks = parent.of("PROCESS_FORK")
    # one event for each child, though each child tries twice; the parent reports no exec
    assert [event.fields["child"] for event in forks] == [child.pid for child in children]
    assert parent.names()["PROCESS_EXEC"] == 0
    assert all(child.names()["MUTEX_TAKEN"] == 1 for child in children)


@pytest.mark.parametrize("how", ["posix_spawn", "posix_spawnp"])
def test_spawned_children_are_recorded(
    how: str, traced: Runner, program: Callable[[str], Path]
) -> None:
    run = traced(program("children"), how)
    assert run.status == 0
    parent, child = run.processes
    (spawned,) = parent.of("PROCESS_SPAWN")
    assert spawned.fields["child"] == child.pid
    assert child.names()["MUTEX_TAKEN"] == 1
    assert run.stdout.endswith("done\n")


PIDFD = """
#define _GNU_SOURCE
#include <spawn.h>
#include <sys/wait.h>
int main(void)
{
    char *arguments[] = {"true", NULL}, *env[] = {NULL};
    siginfo_t info = {0};
    int fd;
    if (pidfd_spawn(&fd, "/bin/true", NULL, NULL, arguments, env))
        return 1;
    waitid(P_PIDFD, fd, &info, WEXITED);
    if (pidfd_spawnp(&fd, "true", NULL, NULL, arguments, env))
        return 2;
    waitid(P_PIDFD, fd, &info, WEXITED);
    return info.si_status || pidfd_spawn(&fd, "/nowhere", NULL, NULL, arguments, env) != 2;
}
"""


@pytest.mark.skipif("pidfd_spawn" not in hooked_functions(), reason="came with glibc 2.39")
def test_spawn_with_a_descriptor(traced: Runner, compile_c: Compiler) -> None:
    program = compile_c(PIDFD)
    run = traced(program)
    assert (traced.plain(program).status, run.status) == (0, 0)
    parent, *children = run.processes
    spawned = [event.fields["child"] for event in parent.of("PROCESS_SPAWN")]
    assert spawned == [child.pid for child in children]


@pytest.mark.parametrize("how", ["fork", "clone", "vfork", "posix_spawn", "execve", "execv"])
def test_children_are_not_traced_with_children_0(
    how: str, traced: Runner, program: Callable[[str], Path]
) -> None:
    run = traced(program("children"), how, tracing_arg="children=0")
    assert run.status == 0
    assert run.only.names()["MUTEX_TAKEN"] > 0
    assert not any(event.tid != event.object and event.tid == 0 for event in run.only.events)


def test_exec_is_traced_with_children_0(traced: Runner) -> None:
    run = traced("/bin/sh", "-c", "exec /bin/sh -c 'exec /bin/true'", tracing_arg="children=0")
    assert len(run.processes) == 3
    run = traced("/bin/sh", "-c", "/bin/true; echo $PTHREAD_NPTL_TRACE", tracing_arg="children=0")
    assert len(run.processes) == 1
    assert run.stdout == "\n"


def test_shell_pipeline_and_system(traced: Runner) -> None:
    run = traced("/bin/sh", "-c", "echo 1 | cat; exec /bin/true", level=2)
    assert run.stdout == "1\n"
    executed = [p for p in run.processes if p.names()["PROCESS_EXEC"]]
    assert len(executed) == 2


@pytest.mark.parametrize("how", ["spawn", "vfork", "fork"])
def test_large_environments_on_small_stacks(
    how: str, traced: Runner, program: Callable[[str], Path]
) -> None:
    run = traced(program("large_environment"), how, "1500", "16384", "40", level=1)
    assert run.status == 0
    # each child is traced, whatever environment it had
    assert len(run.processes) >= 1 + 40
