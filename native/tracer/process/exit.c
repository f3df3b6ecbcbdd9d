/* SPDX-License-Identifier: MIT */
/* exit.c - _exit() and _Exit(): a process that ends without its destructors is still to say what it had mapped. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "platform/raw_syscall.h"

/* Not in a child of vfork, which is in the memory of its parent. */
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
