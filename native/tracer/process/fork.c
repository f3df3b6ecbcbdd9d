/* SPDX-License-Identifier: MIT */
/* fork.c - fork() and clone(): the child is a process of its own, with its own trace. */
/*
 * Before any event, a forked child forgets the state of its parent's thread. Functions of pthread_atfork() run in the
 * child before fork() returns, and may use locks. The tracer's function has to run first, so it is registered first:
 * when the tracer starts, or when another library registers a function earlier. Signals are blocked from just before
 * the fork until the child is ready, because their handlers may use semaphores.
 *
 * vfork() has no hook, because it returns twice on one stack. Its child uses the memory and the thread-local storage
 * of its parent, so its events appear as the parent's. The child is reported when it executes a program. The same
 * holds for children of clone() with CLONE_VFORK; the parent waits for them. For other children in the parent's
 * memory, see shared_storage.c.
 */
#include <errno.h>
#include <linux/sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/missing.h"
#include "points.h"
#include "process.h"
#include "platform/raw_syscall.h"
#include "platform/signals.h"
#include "syscall_numbers.h"
#include "team.h"

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

void ptt_report_start(void)
{
	REPORT_WITH(PROCESS, PROCESS_START, process_start, (uintptr_t)getpid(), NULL, .ppid = (uint32_t)getppid(),
		    .pthread = (uintptr_t)pthread_self());
	ptt_report_own_priority();
}

/* ------------------------------------------------------------ fork */

static __thread ptt_signal_set mask_before INITIAL_EXEC;

static void become_child(void)
{
	int before = errno, state;

	ptt_forget_tid();
	ptt_forget_lock_types();
	ptt_forget_teams();
	ptt_forget_purposes();
	ptt_forget_storage();
	ptt_closing_in_child();
	state = ptt_hold_cancellation();
	if (ptt_restart_handler())
		ptt_report_start();
	ptt_allow_cancellation(state);
	errno = before;
}

/* Registered first, so it runs last before the fork, and the next two functions run first after the fork. */
static void prepare(void)
{
	hold_signals(&mask_before);
}

static void in_parent(void)
{
	restore_signals(&mask_before);
	ptt_report_daemon();
}

static void in_child(void)
{
	become_child();
	ptt_leave_daemon();
	restore_signals(&mask_before);
}

UNWATCHED void ptt_start_process(void)
{
	static uint32_t registered;

	/* relaxed: only once; no other data depends on it */
	if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED))
		ptt_real.__register_atfork(prepare, in_parent, in_child, NULL);
}

/* pthread_atfork(), which is linked statically into each program and library, calls this. */
EXPORT int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library);
EXPORT UNWATCHED int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *library)
{
	ptt_start_process();
	return ptt_real.__register_atfork(before, parent, child, library);
}

EXPORT pid_t fork(void)
{
	void *site = CALL_SITE;
	pid_t child = ptt_real.fork();

	if (child > 0)
		ptt_report_fork(PTT_FORK, child, site);
	return child;
}
ALIAS(__fork, fork);

/* _Fork() runs no functions of pthread_atfork(). */
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
		ptt_report_fork(PTT_BARE_FORK, child, site);
	return child;
}

/* ------------------------------------------------------------ clone */

struct clone_start {
	int (*routine)(void *arg);
	void *arg;
	ptt_signal_set mask;
};

/* In the child, which has a copy of the parent's stack. */
static int clone_trampoline(void *arg)
{
	struct clone_start *start = arg;

	become_child();
	restore_signals(&start->mask);
	return start->routine(start->arg);
}

/* A child in our memory is like a thread, but the thread library does not know it. It is not traced. */
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
		ptt_report_fork(PTT_CLONE, child, site);
	return child;
}
ALIAS(__clone, clone);

/* Does the child have its own memory, and a copy of the caller's stack? Then C code can make the call. */
static bool is_fork(uint64_t flags, uint64_t stack)
{
	return !(flags & CLONE_VM) && !stack;
}

bool ptt_syscall_forks(long number, long a, long b)
{
	switch (number) {
	case SYS_clone:
		ptt_share_storage((uint64_t)a);
		return is_fork((uint64_t)a, (uint64_t)b);
	case SYS_clone3: {
		const struct clone_args *args = (const struct clone_args *)a;

		/* bad arguments: let the kernel refuse them */
		if (a < 4096 || b < CLONE_ARGS_SIZE_VER0)
			return false;
		ptt_share_storage(args->flags);
		return is_fork(args->flags, args->stack);
	}
#ifdef SYS_fork
	case SYS_fork:
		return true;
#endif
	}
	return false;
}

long ptt_syscall_fork(long number, const long *arg, void *site)
{
	ptt_signal_set before;
	long child;

	hold_signals(&before);
	child = ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (child == 0)
		become_child();
	restore_signals(&before);
	if (child > 0)
		ptt_report_fork(PTT_FORK_BY_SYSCALL, child, site);
	return child;
}
