/* SPDX-License-Identifier: MIT */
/* process.c - fork and its handlers, clone, exec, spawn, syscall(), prctl, dlclose: results, errors, order. */
#include "case.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pty.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static long status_of(long pid)
{
	int status = 0, before = errno;

	if (pid < 0)
		return -1;
	while (waitpid((pid_t)pid, &status, 0) < 0)
		;
	errno = before;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static long forked(pid_t (*how)(void), int status)
{
	pid_t pid = how();

	if (pid == 0) {
		pthread_mutex_lock(mutex(NORMAL));
		_exit(status);
	}
	return status_of(pid);
}

static pid_t by_syscall(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int clone_child(void *arg)
{
	return (int)(long)arg;
}

static long cloned(int flags, long status)
{
	static char stack[65536] __attribute__((aligned(16)));

	return status_of(clone(clone_child, stack + sizeof(stack), flags, (void *)status));
}

/* ------------------------------------------------------------ functions of pthread_atfork() */

static char order[32];
static int orders;

#define NOTE(name, letter)               \
	static void name(void)           \
	{                                \
		order[orders++] = letter; \
	}
NOTE(before_1, 'a')
NOTE(before_2, 'b')
NOTE(parent_1, 'c')
NOTE(parent_2, 'd')
NOTE(child_1, 'e')
NOTE(child_2, 'f')

static long order_at_fork(void)
{
	int status = 0;
	pid_t pid;

	orders = 0;
	memset(order, 0, sizeof(order));
	pthread_atfork(before_1, parent_1, child_1);
	pthread_atfork(before_2, parent_2, child_2);
	pid = fork();
	if (pid == 0)
		_exit(strcmp(order, "baef") == 0 ? 21 : 22);
	waitpid(pid, &status, 0);
	printf("order: %s\n", order);
	return WEXITSTATUS(status);
}

static long fork_keeps_mask(void)
{
	sigset_t one, before, now;
	pid_t pid;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	sigprocmask(SIG_BLOCK, &one, &before);
	pid = fork();
	sigprocmask(SIG_BLOCK, NULL, &now);
	if (pid == 0)
		_exit(sigismember(&now, SIGUSR2) * 2 + sigismember(&now, SIGUSR1));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return both(status_of(pid), sigismember(&now, SIGUSR2) * 2 + sigismember(&now, SIGUSR1));
}

CASE(fork, "status", forked(fork, 3))
CASE(fork, "order of functions", order_at_fork())
CASE(fork, "signal mask", fork_keeps_mask())
CASE(_Fork, "status", forked(_Fork, 4))
CASE(vfork, "status", ({
	     pid_t pid = vfork();

	     if (pid == 0)
		     _exit(5);
	     status_of(pid);
     }))
CASE(clone, "own memory", cloned(SIGCHLD, 6))
CASE(clone, "shared memory", cloned(CLONE_VM | SIGCHLD, 7))
CASE(clone, "nonsense", cloned(CLONE_SIGHAND | SIGCHLD, 7))
CASE(clone, "by system call", forked(by_syscall, 8))

/* ------------------------------------------------------------ exec, spawn */

static char *const no_words[] = {(char *)"nothing", NULL};
static char *const true_words[] = {(char *)"true", NULL};
static char *const exit_words[] = {(char *)"sh", (char *)"-c", (char *)"exit 9", NULL};
static char *const show_words[] = {(char *)"env", NULL};
static char *const no_environment[] = {NULL};

static long in_child(int (*what)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(what() < 0 ? errno : 0);
	return status_of(pid);
}

static int exec_shell(void)
{
	return execv("/bin/sh", exit_words);
}

static int exec_list(void)
{
	return execl("/bin/sh", "sh", "-c", "exit 10", (char *)NULL);
}

static int exec_path(void)
{
	return execlp("sh", "sh", "-c", "exit 12", (char *)NULL);
}

static int exec_fd(void)
{
	return fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), exit_words, environ);
}

static const char *volatile nowhere = (const char *)16;

CASE(execve, "not there", execve("/nowhere/nothing", no_words, environ))
CASE(execve, "a directory", execve("/", no_words, environ))
CASE(execve, "no program", execve("/etc/passwd", no_words, environ))
CASE(execve, "a bad pointer", execve(nowhere, no_words, environ))
CASE(execve, "no environment at all", execve("/nowhere/nothing", no_words, NULL))
CASE(execv, "runs", in_child(exec_shell))
CASE(execv, "not there", execv("/nowhere/nothing", no_words))
CASE(execl, "runs", in_child(exec_list))
CASE(execlp, "runs", in_child(exec_path))
CASE(execlp, "not there", execlp("ptt-there-is-no-such-program", "x", (char *)NULL))
CASE(execvp, "not there", execvp("ptt-there-is-no-such-program", no_words))
CASE(execvp, "empty name", execvp("", no_words))
CASE(fexecve, "runs", in_child(exec_fd))
CASE(fexecve, "no descriptor", fexecve(-1, no_words, environ))
CASE(execveat, "not there", execveat(AT_FDCWD, "nowhere", no_words, environ, 0))

static pid_t spawned;
CASE(posix_spawn, "runs", posix_spawn(&spawned, "/bin/sh", NULL, NULL, exit_words, environ) ? -1 : status_of(spawned))
CASE(posix_spawn, "not there", posix_spawn(&spawned, "/nowhere/nothing", NULL, NULL, no_words, environ))
CASE(posix_spawn, "no pid wanted", posix_spawn(NULL, "/bin/true", NULL, NULL, true_words, environ))
CASE(posix_spawn, "empty environment", posix_spawn(&spawned, "/bin/true", NULL, NULL, true_words, no_environment) ? -1 : status_of(spawned))
CASE(posix_spawnp, "runs", posix_spawnp(&spawned, "sh", NULL, NULL, exit_words, environ) ? -1 : status_of(spawned))
CASE(posix_spawnp, "not there", posix_spawnp(&spawned, "ptt-there-is-no-such-program", NULL, NULL, no_words, environ))
CASE(posix_spawnp, "not found in the path", posix_spawnp(&spawned, "/nowhere/env", NULL, NULL, show_words, environ))
CASE(system, "status", system("exit 14") >> 8)
CASE(popen, "status", pclose(popen("exit 15", "r")) >> 8)

CASE(system, "is there a shell", system(NULL))
CASE(system, "not there", system("exec /nowhere/nothing 2>/dev/null") >> 8)
CASE_PENDING(system, "cancelled before", system("exit 0"))
CASE(popen, "not a mode", popen("exit 0", "x") != NULL)

static long from_terminal(void)
{
	char said[16] = "";
	int master;
	pid_t pid = forkpty(&master, NULL, NULL, NULL);

	if (pid == 0)
		_exit(write(1, "here", 4) == 4 && isatty(0) ? 16 : 1);
	if (pid < 0 || read(master, said, sizeof(said)) != 4 || memcmp(said, "here", 4) != 0)
		return -1;
	return both(status_of(pid), close(master));
}

/* The daemon answers through a pipe; the child in between has ended. */
static long as_daemon(void)
{
	int ends[2], answer[2] = {-1, -1};
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (pid == 0) {
		answer[0] = daemon(1, 1);
		answer[1] = getppid() == pid; /* 0 */
		_exit(write(ends[1], answer, sizeof(answer)) != sizeof(answer));
	}
	close(ends[1]);
	if (status_of(pid) || read(ends[0], answer, sizeof(answer)) != sizeof(answer))
		return -1;
	close(ends[0]);
	return both(answer[0], answer[1]);
}

CASE(forkpty, "says it is there", from_terminal())
CASE(daemon, "answers", as_daemon())

/* ------------------------------------------------------------ syscall() */

static int *word(int value)
{
	int *made = memory(sizeof(*made));

	*made = value;
	return made;
}

static const struct timespec *moment(void)
{
	static const struct timespec t = {.tv_nsec = 10000000};

	return &t;
}

static long renamed(const char *name)
{
	char now[32] = "";

	return both(prctl(PR_SET_NAME, name), prctl(PR_GET_NAME, now)) + (strcmp(now, name) != 0);
}

CASE(prctl, "set and get a name", renamed("another"))
CASE(prctl, "no such option", prctl(123456, 1, 2, 3, 4))
CASE(prctl, "no privileges any more", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
CASE(prctl, "which filter", prctl(PR_GET_SECCOMP))
CASE(prctl, "is there a filter", prctl(PR_SET_SECCOMP, 2, NULL))
CASE(dlclose, "open", dlclose(dlopen("libm.so.6", RTLD_NOW)))
CASE(dlclose, "the program itself", dlclose(dlopen(NULL, RTLD_NOW)))

CASE(syscall, "getpid", syscall(SYS_getpid) == getpid())
CASE(syscall, "no such number", syscall(100000))
CASE(syscall, "futex, other value", syscall(SYS_futex, word(1), FUTEX_WAIT, 2, NULL, NULL, 0))
CASE(syscall, "futex, in vain", syscall(SYS_futex, word(1), FUTEX_WAIT, 1, moment(), NULL, 0))
CASE(syscall, "futex, no time", syscall(SYS_futex, word(1), FUTEX_WAIT, 1, no_time(), NULL, 0))
CASE(syscall, "futex, wake nobody", syscall(SYS_futex, word(1), FUTEX_WAKE, 1, NULL, NULL, 0))
CASE(syscall, "futex, bad address", syscall(SYS_futex, 8, FUTEX_WAIT, 1, NULL, NULL, 0))
CASE(syscall, "futex, bad timeout", syscall(SYS_futex, word(1), FUTEX_WAIT, 1, 8, NULL, 0))
CASE(syscall, "futex, no operation", syscall(SYS_futex, word(1), 99, 1, NULL, NULL, 0))
CASE_SIGNALLED(syscall, "futex, signalled", syscall(SYS_futex, word(1), FUTEX_WAIT, 1, NULL, NULL, 0))
CASE(syscall, "clone3, too short", syscall(SYS_clone3, NULL, 0))
