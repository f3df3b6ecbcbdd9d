/* SPDX-License-Identifier: MIT */
/* sched.c - priorities of threads, as far as they are set by the program or are not the ordinary one. */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/confined.h"
#include "platform/raw_syscall.h"
#include "tracer.h"

static void report(pthread_t thread, int policy, int priority, void *site)
{
	REPORT_WITH(THREAD, THREAD_PRIORITY, thread_priority, thread, site, .policy = (uint16_t)policy,
		    .priority = priority);
}

/* Of the calling thread; what cannot be asked for is taken for the ordinary one. */
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

/* Of another thread only its kernel thread id is known, which the trace knows no pthread_t by. */
EXPORT int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	void *site = CALL_SITE;
	int result = ptt_real.sched_setscheduler(pid, policy, param);

	if (result >= 0 && (pid == 0 || (uint32_t)pid == ptt_tid()))
		report(pthread_self(), policy & ~SCHED_RESET_ON_FORK, param->sched_priority, site);
	return result;
}
