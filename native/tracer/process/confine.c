/* SPDX-License-Identifier: MIT */
/* confine.c - prctl() and seccomp(): a program that gives up system calls is traced without system calls; names of threads. */
/*
 * A filter may make any system call fatal that the program itself does not make. So in a program with a filter,
 * tracer and handlers only use the calls that threads need anyway: for futexes and memory. They open no files, ask
 * for no ids, and do not trace children. In strict mode, or if reading the clock is forbidden, nothing is traced.
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "process.h"
#include "platform/raw_syscall.h"
#include "syscall_numbers.h"
#include "thread.h"

/* The system calls that a call of prctl() or seccomp() forbids. */
enum demand { NOTHING, FILTER, EVERYTHING };

static enum demand demand_of_prctl(long option, long a, long b)
{
	if (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT)
		return EVERYTHING;
	if (option == PR_SET_SECCOMP && b)
		return FILTER;
#ifdef PR_SET_TSC
	if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
		return EVERYTHING;
#endif
	return NOTHING;
}

/* Programs call it with NULL to test for kinds of filters. */
static enum demand demand_of_seccomp(long operation, long filter)
{
	if (operation == SECCOMP_SET_MODE_STRICT)
		return EVERYTHING;
	return operation == SECCOMP_SET_MODE_FILTER && filter ? FILTER : NOTHING;
}

/*
 * Call this before the program's call: after a granted call the tracer may make no system call. Undo it by release()
 * if the kernel refuses the call. Other threads may make such calls at the same time, so this counts calls that are
 * in progress or were granted. relaxed: pairs with ptt_is_confined(); the system call that follows orders it
 */
static void confine(enum demand demand)
{
	if (demand == NOTHING)
		return;
	__atomic_fetch_add(&__nptl_trace_confined, 1, __ATOMIC_RELAXED);
	if (demand == EVERYTHING)
		ptt_suspend();
}

static void release(enum demand demand)
{
	if (demand == NOTHING)
		return;
	if (demand == EVERYTHING)
		ptt_resume();
	__atomic_fetch_sub(&__nptl_trace_confined, 1, __ATOMIC_RELAXED);
}

/* After a call that returned @result; keeps errno. Not in a child of vfork(): its name is not its parent's name. */
static void report_own_name(long option, long name, long result, void *site)
{
	if (option == PR_SET_NAME && result == 0 && must_trace(THREAD, THREAD_NAME) &&
	    (__nptl_trace_confined || ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0) == ptt_pid))
		ptt_report_name(pthread_self(), (const char *)name, strnlen((const char *)name, PTT_KERNEL_NAME), site);
}

bool ptt_prctl_is_ours(long option)
{
#ifdef PR_SET_TSC
	if (option == PR_SET_TSC)
		return true;
#endif
	return option == PR_SET_SECCOMP || option == PR_SET_NAME;
}

long ptt_syscall_confine(long number, const long *arg, void *site)
{
	enum demand demand = number == SYS_prctl ? demand_of_prctl(arg[0], arg[1], arg[2]) : demand_of_seccomp(arg[0], arg[2]);
	long result;

	confine(demand);
	result = ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (result < 0)
		release(demand);
	if (number == SYS_prctl)
		report_own_name(arg[0], arg[1], result, site);
	return result;
}

EXPORT int prctl(int option, ...)
{
	void *site = CALL_SITE;
	enum demand demand;
	long arg[4];
	va_list more;
	int i, result;

	va_start(more, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(more, long);
	va_end(more);
	demand = __nptl_trace_enabled ? demand_of_prctl(option, arg[0], arg[1]) : NOTHING;
	confine(demand);
	result = ptt_real.prctl(option, (unsigned long)arg[0], (unsigned long)arg[1], (unsigned long)arg[2],
				(unsigned long)arg[3]);
	if (result < 0)
		release(demand);
	report_own_name(option, arg[0], result, site);
	return result;
}
