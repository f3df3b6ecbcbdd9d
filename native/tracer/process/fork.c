/* SPDX-License-Identifier: MIT */
/* fork.c - fork and clone: the child of a fork is a process of its own, and starts its trace anew. */
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

/* Registered first, it is the last to run before the fork, */
static void prepare(void)
{
	hold_signals(&mask_before);
}

/* and these are the first to run after it. */
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

EXPORT pid_t fork(void)
{
	void *site = CALL_SITE;
	pid_t child = ptt_real.fork();

	if (child > 0)
		ptt_report_fork(PTT_FORK, child, site);
	return child;
}
ALIAS(__fork, fork);

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
		ptt_report_fork(PTT_CLONE, child, site);
	return child;
}
ALIAS(__clone, clone);

/* Children with memory of their own, on a copy of the caller's stack, can be made by C. */
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
