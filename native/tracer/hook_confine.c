/* SPDX-License-Identifier: MIT */
/* hook_confine.c - prctl() and seccomp(): a program that gives up system calls is traced without those it may miss. */
/*
 * A filter may make any call fatal that the program itself does not make. So once there is one, tracer and handlers do
 * with what threads need anyway, futexes and memory: no files are opened, nobody is asked for his number, and the
 * children of forks are not traced. In strict mode, or where reading the clock is forbidden, nothing is traced at all.
 */
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "process.h"

static void confine(bool strict)
{
	if (!__nptl_trace_enabled)
		return;
	/* relaxed: pairs with ptt_is_confined(); the system call that follows is what makes it matter */
	__atomic_store_n(&__nptl_trace_confined, 1, __ATOMIC_RELAXED);
	if (strict)
		ptt_stop();
}

void ptt_confine_by_prctl(long option, long a, long b)
{
	if (option == PR_SET_SECCOMP && (a == SECCOMP_MODE_STRICT || b))
		confine(a == SECCOMP_MODE_STRICT);
#ifdef PR_SET_TSC
	if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
		confine(true);
#endif
}

/* Programs try the call with NULL to see which kinds of filters there are. */
void ptt_confine_by_seccomp(long operation, long filter)
{
	if (operation == SECCOMP_SET_MODE_STRICT || (operation == SECCOMP_SET_MODE_FILTER && filter))
		confine(operation == SECCOMP_SET_MODE_STRICT);
}

EXPORT int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list more;
	int i;

	va_start(more, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(more, unsigned long);
	va_end(more);
	ptt_confine_by_prctl(option, (long)arg[0], (long)arg[1]);
	return ptt_real.prctl(option, arg[0], arg[1], arg[2], arg[3]);
}
