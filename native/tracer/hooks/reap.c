/* SPDX-License-Identifier: MIT */
/* reap.c - wait() and its kin: report the child that ended, and how long the thread waited for it. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "sleep.h"

static uint64_t begin(void)
{
	return must_trace(PROCESS, PROCESS_REAPED) ? ptt_now_ns() : 0;
}

static void report(pid_t child, uint64_t began, void *site)
{
	if (child > 0 && began)
		REPORT_WITH(PROCESS, PROCESS_REAPED, process_reaped, (uintptr_t)ptt_pid, site, .child = child,
			    .wait_ns = ptt_now_ns() - began);
}

/*
 * REAP(call): the real function, called with into_, since the program may pass no status. A child that stopped or
 * continued has not ended.
 */
#define REAP(call)                                                      \
	({                                                              \
		uint64_t began_ = begin();                              \
		int own_, *into_ = status ? status : &own_;             \
		pid_t child_ = (call);                                  \
                                                                        \
		if (child_ > 0 && (WIFEXITED(*into_) || WIFSIGNALED(*into_))) \
			report(child_, began_, site);                   \
		child_;                                                 \
	})

pid_t ptt_wait(int *status, void *site)
{
	return REAP(ptt_real.wait(into_));
}

pid_t ptt_waitpid(pid_t pid, int *status, int options, void *site)
{
	return REAP(ptt_real.waitpid(pid, into_, options));
}

pid_t ptt_wait3(int *status, int options, struct rusage *usage, void *site)
{
	return REAP(ptt_real.wait3(into_, options, usage));
}

pid_t ptt_wait4(pid_t pid, int *status, int options, struct rusage *usage, void *site)
{
	return REAP(ptt_real.wait4(pid, into_, options, usage));
}

int ptt_waitid(idtype_t type, id_t id, siginfo_t *info, int options, void *site)
{
	uint64_t began = begin();
	siginfo_t own, *into = info ? info : &own;
	int result = ptt_real.waitid(type, id, into, options);

	if (result == 0 && into->si_pid > 0 &&
	    (into->si_code == CLD_EXITED || into->si_code == CLD_KILLED || into->si_code == CLD_DUMPED))
		report(into->si_pid, began, site);
	return result;
}
