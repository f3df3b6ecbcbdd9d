/* SPDX-License-Identifier: MIT */
/* sched.c - scheduling policy and priority of threads: reported when the program sets them, and at the begin if not SCHED_OTHER. */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/confined.h"
#include "platform/raw_syscall.h"
#include "syscall_numbers.h"

static void report(pthread_t thread, int policy, int priority, void *site)
{
	REPORT_WITH(THREAD, THREAD_PRIORITY, thread_priority, thread, site, .policy = (uint16_t)policy,
		    .priority = priority);
}

/* The policy of the calling thread; SCHED_OTHER if the kernel does not say. */
static int own_policy(struct sched_param *param)
{
	long policy = ptt_raw_syscall(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);

	if (policy <= SCHED_OTHER || ptt_raw_syscall(SYS_sched_getparam, 0, (long)param, 0, 0, 0, 0))
		return SCHED_OTHER;
	return (int)policy & ~SCHED_RESET_ON_FORK;
}

void ptt_report_own_priority(void)
{
	struct sched_param param = {0};
	int policy;

	if (__nptl_trace_confined || ptt_level(NPTL_DOMAIN_THREAD) < NPTL_LEVEL_THREAD_PRIORITY)
		return;
	policy = own_policy(&param);
	if (policy != SCHED_OTHER)
		report(pthread_self(), policy, param.sched_priority, NULL);
}

EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	void *site = CALL_SITE;
	int result = ptt_real.pthread_setschedparam(thread, policy, param);

	if (result == 0)
		report(thread, policy, param->sched_priority, site);
	return result;
}

EXPORT int pthread_setschedprio(pthread_t thread, int priority)
{
	void *site = CALL_SITE;
	int result = ptt_real.pthread_setschedprio(thread, priority), policy = SCHED_OTHER;
	struct sched_param param;

	if (result == 0 && pthread_getschedparam(thread, &policy, &param) == 0)
		report(thread, policy, priority, site);
	return result;
}

/* Of another thread only the kernel id is known, not its pthread_t. */
static bool is_own(pid_t pid)
{
	return pid == 0 || (uint32_t)pid == ptt_tid();
}

EXPORT int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	void *site = CALL_SITE;
	int result = ptt_real.sched_setscheduler(pid, policy, param);

	if (result >= 0 && is_own(pid))
		report(pthread_self(), policy & ~SCHED_RESET_ON_FORK, param->sched_priority, site);
	return result;
}
ALIAS(__sched_setscheduler, sched_setscheduler);

/* After a call that set only a part of policy and priority: ask the kernel for both. A confined program does not ask. */
static void report_set(pid_t pid, void *site)
{
	struct sched_param param = {0};
	int policy;

	if (!is_own(pid) || __nptl_trace_confined || !must_trace(THREAD, THREAD_PRIORITY))
		return;
	policy = own_policy(&param);
	report(pthread_self(), policy, param.sched_priority, site);
}

EXPORT int sched_setparam(pid_t pid, const struct sched_param *param)
{
	void *site = CALL_SITE;
	int result = ptt_real.sched_setparam(pid, param);

	if (result >= 0)
		report_set(pid, site);
	return result;
}

#if __GLIBC_PREREQ(2, 41)
EXPORT int sched_setattr(pid_t pid, struct sched_attr *attr, unsigned int flags)
{
	void *site = CALL_SITE;
	int result = ptt_real.sched_setattr(pid, attr, flags);

	if (result >= 0)
		report_set(pid, site);
	return result;
}
#endif

long ptt_syscall_sched(long number, const long *arg, void *site)
{
	long result = ptt_real.syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);

	if (result >= 0)
		report_set((pid_t)arg[0], site);
	return result;
}
