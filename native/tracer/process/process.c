/* SPDX-License-Identifier: MIT */
/* process.c - fork, clone, exec and spawn, as far as the tracing of children needs it. */
/*
 * A forked child is a process of its own: before anything in it is traced it forgets whose thread it was. Functions given
 * to pthread_atfork() run in the child before fork returns, and may use locks; ours has to be the first of them, so it is
 * registered before anybody else's: at our start, or when somebody registers one earlier than that. Signals wait from
 * just before the fork until the child is ready, for their handlers may use semaphores.
 *
 * vfork is not hooked: it returns twice on one stack. Its child lives in the memory, and as the thread, of its parent;
 * what it does is traced as its parent's. It shows when it executes a program. So it is with children of clone() that the
 * parent waits for (CLONE_VFORK); of others in its memory see shared_storage.c.
 */
#include <errno.h>
#include <linux/sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/missing.h"
#include "points.h"
#include "process.h"
#include "platform/raw_syscall.h"
#include "signals.h"

#ifndef CLONE_VM
#define CLONE_VM 0x00000100
#endif

/* Just before a fork. */
static void hold_signals(ptt_signal_set *before)
{
	ptt_block_signals(before);
	ptt_keep_levels();
	ptt_mute_points(true);
}

static void restore_signals(const ptt_signal_set *before)
{
	ptt_mute_points(false);
	ptt_restore_signals(before);
}

/* ------------------------------------------------------------ fork */

static __thread ptt_signal_set mask_before INITIAL_EXEC;

static void become_child(void)
{
	int before = errno;

	ptt_forget_tid();
	ptt_forget_purposes();
	ptt_forget_storage();
	ptt_restart_handler();
	errno = before;
}

/* Registered first, it is the last to run before the fork, */
static void prepare(void)
{
	hold_signals(&mask_before);
}

/* and these are the first to run after it. */
static void in_parent(void)
{
	restore_signals(&mask_before);
}

static void in_child(void)
{
	become_child();
	restore_signals(&mask_before);
}

/*
 * ThreadSanitizer, where the tracer is built with it, registers functions before it can watch anything. Other builds do
 * not mind.
 */
#define UNWATCHED __attribute__((no_sanitize_thread))

UNWATCHED void ptt_start_process(void)
{
	static bool registered;

	/* relaxed: once; nothing is handed over */
	if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED))
		ptt_real.__register_atfork(prepare, in_parent, in_child, NULL);
}

/* What pthread_atfork(), which is linked into each program and library, calls. */
EXPORT int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library);
EXPORT UNWATCHED int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library)
{
	ptt_start_process();
	return ptt_real.__register_atfork(before, parent, child, library);
}

static void report_fork(enum ptt_fork_kind kind, long child, void *site)
{
	REPORT_WITH(PROCESS, PROCESS_FORK, process_fork, (uintptr_t)ptt_pid, site, .kind = kind,
		    .child = (int32_t)child);
}

EXPORT pid_t fork(void)
{
	void *site = CALL_SITE;
	pid_t child = ptt_real.fork();

	if (child > 0)
		report_fork(PTT_FORK, child, site);
	return child;
}

/* Runs no functions of pthread_atfork(). */
EXPORT pid_t _Fork(void)
{
	void *site = CALL_SITE;
	ptt_signal_set before;
	pid_t child;

	if (!__nptl_trace_enabled)
		return ptt_real._Fork();
	hold_signals(&before);
	child = ptt_real._Fork();
	if (child == 0)
		become_child();
	restore_signals(&before);
	if (child > 0)
		report_fork(PTT_BARE_FORK, child, site);
	return child;
}

/* ------------------------------------------------------------ clone */

struct clone_start {
	int (*routine)(void *arg);
	void *arg;
	ptt_signal_set mask;
};

/* In the child, which has a copy of the parent's stack. */
static int clone_trampoline(void *given)
{
	struct clone_start *start = given;

	become_child();
	restore_signals(&start->mask);
	return start->routine(start->arg);
}

/* A child that shares our memory is a thread in all but name, and none of the thread library's: not traced as anything. */
static int pass_on_clone(int (*routine)(void *), void *stack, int flags, void *arg, pid_t *parent_tid, void *tls,
			pid_t *child_tid)
{
	bool shares = ptt_share_storage((uint64_t)(unsigned int)flags);
	int child = ptt_real.clone(routine, stack, flags, arg, parent_tid, tls, child_tid);

	if (child < 0 && shares)
		ptt_own_storage();
	return child;
}

EXPORT int clone(int (*routine)(void *), void *stack, int flags, void *arg, ...)
{
	void *site = CALL_SITE;
	struct clone_start start = {.routine = routine, .arg = arg};
	pid_t *parent_tid, *child_tid;
	void *tls;
	va_list more;
	int child;

	va_start(more, arg);
	parent_tid = va_arg(more, pid_t *);
	tls = va_arg(more, void *);
	child_tid = va_arg(more, pid_t *);
	va_end(more);
	if ((flags & CLONE_VM) || !routine || !__nptl_trace_enabled)
		return pass_on_clone(routine, stack, flags, arg, parent_tid, tls, child_tid);
	hold_signals(&start.mask);
	child = ptt_real.clone(clone_trampoline, stack, flags, &start, parent_tid, tls, child_tid);
	restore_signals(&start.mask);
	if (child > 0)
		report_fork(PTT_CLONE, child, site);
	return child;
}

/* Children with memory of their own, on a copy of the caller's stack, can be left to C. */
static bool is_fork(uint64_t flags, uint64_t stack)
{
	return !(flags & CLONE_VM) && !stack;
}

int ptt_syscall_is_ours(long number, long a, long b)
{
	if (!__nptl_trace_enabled)
		return false;
	switch (number) {
	case SYS_prctl:
		return ptt_prctl_is_ours(a);
	case SYS_seccomp:
		return true;
	case SYS_clone:
		ptt_share_storage((uint64_t)a);
		return is_fork((uint64_t)a, (uint64_t)b);
	case SYS_clone3: {
		const struct clone_args *args = (const struct clone_args *)a;

		/* what the kernel refuses is left to it */
		if (a < 4096 || b < CLONE_ARGS_SIZE_VER0)
			return false;
		ptt_share_storage(args->flags);
		return is_fork(args->flags, args->stack);
	}
#ifdef SYS_fork
	case SYS_fork:
		return true;
#endif
	case SYS_execve:
	case SYS_execveat:
		return true;
	}
	return false;
}

static long fork_by_syscall(long number, const long *arg, void *site)
{
	ptt_signal_set before;
	long child;

	hold_signals(&before);
	child = ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (child == 0)
		become_child();
	restore_signals(&before);
	if (child > 0)
		report_fork(PTT_FORK_BY_SYSCALL, child, site);
	return child;
}

/* ------------------------------------------------------------ exec */

/* A child of vfork, traced as its parent, which must not be taken for a process that executes something. */
static void report_vfork(pid_t child, void *site)
{
	static pid_t reported;

	/* programs try execve() in one directory after the other */
	if (reported != child)
		report_fork(PTT_VFORK, child, site);
	reported = child;
}

static void report_own_exec(void *site)
{
	ptt_report_lost();
	REPORT_WITH(PROCESS, PROCESS_EXEC, process_exec, (uintptr_t)ptt_pid, site, .pid = (uint32_t)ptt_pid);
}

static void report_exec(void *site)
{
	int before = errno;
	pid_t pid = (pid_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	if (pid != ptt_pid)
		report_vfork(pid, site);
	else
		report_own_exec(site);
	errno = before;
}

static int report_failed(int result, void *site)
{
	int error = errno;
	pid_t pid = (pid_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	if (pid == ptt_pid)
		REPORT_WITH(PROCESS, PROCESS_EXEC_FAILED, process_exec_failed, (uintptr_t)pid, site, .result = error);
	errno = error;
	return result;
}

/* EXEC(site, environment, call): the real function, called with env_, the environment to use. */
#define EXEC(site, environment, call)                                \
	({                                                           \
		struct ptt_room room_ = {0};                         \
		char **env_ = WITH_TRACER(&room_, environment, true); \
		long result_;                                        \
                                                                     \
		if (__nptl_trace_enabled)                            \
			report_exec(site);                           \
		result_ = (call);                                    \
		ptt_room_unmap(&room_);                              \
		report_failed((int)result_, site);                   \
	})

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	return EXEC(CALL_SITE, env, ptt_real.execve(path, argv, env_));
}

EXPORT int execv(const char *path, char *const argv[])
{
	return EXEC(CALL_SITE, environ, ptt_real.execve(path, argv, env_));
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return EXEC(CALL_SITE, environ, ptt_real.execvpe(file, argv, env_));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	return EXEC(CALL_SITE, env, ptt_real.execvpe(file, argv, env_));
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	return EXEC(CALL_SITE, env, ptt_real.fexecve(fd, argv, env_));
}

EXPORT int execveat(int directory, const char *path, char *const argv[], char *const env[], int flags)
{
	return EXEC(CALL_SITE, env, ptt_real.execveat(directory, path, argv, env_, flags));
}

/*
 * LIST_ARGUMENTS - argv of a function that takes it as a list, on the stack; @list is left behind the NULL
 * The first one must not be NULL, and the compiler believes it; where it is, the real function shall be told.
 */
#define LIST_ARGUMENTS(argv, first, list)                                              \
	do {                                                                           \
		char *volatile first_ = (char *)(first);                               \
		char *next_ = first_;                                                  \
		size_t count_ = 0, i_;                                                 \
		va_list counted_;                                                      \
                                                                                       \
		va_copy(counted_, list);                                               \
		for (; next_; next_ = va_arg(counted_, char *))                        \
			count_++;                                                      \
		va_end(counted_);                                                      \
		(argv) = alloca((count_ + 1) * sizeof(char *));                        \
		(argv)[0] = first_;                                                    \
		for (i_ = 1; i_ <= count_; i_++)                                       \
			(argv)[i_] = va_arg(list, char *);                             \
	} while (0)

EXPORT int execl(const char *path, const char *first, ...)
{
	void *site = CALL_SITE;
	va_list list;
	char **argv;

	va_start(list, first);
	LIST_ARGUMENTS(argv, first, list);
	va_end(list);
	return EXEC(site, environ, ptt_real.execve(path, argv, env_));
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	void *site = CALL_SITE;
	va_list list;
	char **argv;

	va_start(list, first);
	LIST_ARGUMENTS(argv, first, list);
	va_end(list);
	return EXEC(site, environ, ptt_real.execvpe(file, argv, env_));
}

EXPORT int execle(const char *path, const char *first, ...)
{
	void *site = CALL_SITE;
	char **argv, **env;
	va_list list;

	va_start(list, first);
	LIST_ARGUMENTS(argv, first, list);
	env = va_arg(list, char **);
	va_end(list);
	return EXEC(site, env, ptt_real.execve(path, argv, env_));
}

long ptt_syscall_process(long number, long a, long b, long c, long d, long e, long f)
{
	void *site = CALL_SITE;

	if (number == SYS_prctl || number == SYS_seccomp)
		return ptt_syscall_confine(number, a, b, c, d, e, f, site);
	if (number == SYS_execve)
		return EXEC(site, (char **)c, ptt_real.syscall(number, a, b, (long)env_, d, e, f));
	if (number == SYS_execveat)
		return EXEC(site, (char **)d, ptt_real.syscall(number, a, b, c, (long)env_, e, f));
	return fork_by_syscall(number, (const long[]){a, b, c, d, e, f}, site);
}

/* ------------------------------------------------------------ spawn */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
			   char *const *, char *const *);

static int spawn(spawn_function *real, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const *argv, char *const *env, void *site)
{
	struct ptt_room room = {0};
	char **traced = WITH_TRACER(&room, env, false);
	pid_t own;
	int result;

	if (!pid)
		pid = &own;
	result = real(pid, path, actions, attr, argv, traced);
	ptt_room_unmap(&room);
	if (result == 0)
		REPORT_WITH(PROCESS, PROCESS_SPAWN, process_spawn, (uintptr_t)ptt_pid, site, .child = *pid);
	return result;
}

/* The functions of today, and those of glibc before 2.15, which give a file without a known format to the shell. */
#define SPAWN(function, name, real)                                                                                   \
	EXPORT int function(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,                  \
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[]);                    \
	EXPORT int function(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,                  \
			    const posix_spawnattr_t *attr, char *const argv[], char *const env[])                     \
	{                                                                                                             \
		return spawn(real, pid, path, actions, attr, argv, env, CALL_SITE);                                   \
	}

SPAWN(ptt_posix_spawn, posix_spawn, ptt_real.posix_spawn)
SPAWN(ptt_posix_spawnp, posix_spawnp, ptt_real.posix_spawnp)
VERSION_X86(ptt_posix_spawn, posix_spawn, "@@GLIBC_2.15");
VERSION_X86(ptt_posix_spawnp, posix_spawnp, "@@GLIBC_2.15");
#if defined(__x86_64__)
SPAWN(ptt_old_posix_spawn, posix_spawn, ptt_old.posix_spawn)
SPAWN(ptt_old_posix_spawnp, posix_spawnp, ptt_old.posix_spawnp)
VERSION_X86(ptt_old_posix_spawn, posix_spawn, "@" PTT_OLD_VERSION);
VERSION_X86(ptt_old_posix_spawnp, posix_spawnp, "@" PTT_OLD_VERSION);
#endif
