/* SPDX-License-Identifier: MIT */
/* exec.c - the exec functions, and _exit() and _Exit(), which end a process without destructors. */
/* The exec functions pass the tracer on to the new program. Before a process ends, the handler lists its modules. */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "platform/raw_syscall.h"
#include "syscall_numbers.h"

/* The exec of a child of vfork(). The child is traced as its parent, so the event is a fork, not an exec of the parent. */
static void report_vfork(pid_t child, void *site)
{
	static pid_t reported;

	/* once for each child: programs call execve() for one directory after the other */
	if (reported != child)
		ptt_report_fork(PTT_VFORK, child, site);
	reported = child;
}

static void report_exec(void *site)
{
	int before = errno;
	pid_t pid = (pid_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	if (pid != ptt_pid) {
		report_vfork(pid, site);
	} else {
		ptt_report_lost();
		REPORT_WITH(PROCESS, PROCESS_EXEC, process_exec, (uintptr_t)ptt_pid, site, .pid = (uint32_t)ptt_pid);
	}
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
 * LIST_ARGUMENTS - make argv, on the stack, from a list of arguments; @list then stands behind the NULL The compiler
 * takes the first argument for nonnull. volatile: if it is NULL, the real function shall see that.
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

/*
 * EXEC_LIST(first, environment, call): EXEC() in a function with a list of arguments that begins with parameter
 * @first. The call uses argv_. @environment is evaluated when list_ stands behind the list.
 */
#define EXEC_LIST(first, environment, call)             \
	({                                              \
		void *site_ = CALL_SITE;                \
		char **argv_, **wanted_;                \
		va_list list_;                          \
                                                        \
		va_start(list_, first);                 \
		LIST_ARGUMENTS(argv_, first, list_);    \
		wanted_ = (environment);                \
		va_end(list_);                          \
		EXEC(site_, wanted_, call);             \
	})

EXPORT int execl(const char *path, const char *first, ...)
{
	return EXEC_LIST(first, environ, ptt_real.execve(path, argv_, env_));
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	return EXEC_LIST(first, environ, ptt_real.execvpe(file, argv_, env_));
}

EXPORT int execle(const char *path, const char *first, ...)
{
	return EXEC_LIST(first, va_arg(list_, char **), ptt_real.execve(path, argv_, env_));
}

long ptt_syscall_exec(long number, const long *arg, void *site)
{
	if (number == SYS_execve)
		return EXEC(site, (char **)arg[2],
			    ptt_real.syscall(number, arg[0], arg[1], (long)env_, arg[3], arg[4], arg[5]));
	return EXEC(site, (char **)arg[3], ptt_real.syscall(number, arg[0], arg[1], arg[2], (long)env_, arg[4], arg[5]));
}

/* ------------------------------------------------------------ _exit */

/* Not in a child of vfork(), which uses its parent's memory. */
static void before_exit(void)
{
	/* relaxed: set when the handler begins */
	void (*before)(void) = __atomic_load_n(&ptt_before_exit, __ATOMIC_RELAXED);
	int cancellation;

	if (!__nptl_trace_enabled || !before || __nptl_trace_confined || ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) != ptt_pid)
		return;
	cancellation = ptt_hold_cancellation();
	before();
	ptt_allow_cancellation(cancellation);
}

EXPORT void _exit(int status)
{
	before_exit();
	ptt_real._exit(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	before_exit();
	ptt_real._Exit(status);
	__builtin_unreachable();
}
