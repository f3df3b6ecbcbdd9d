/* SPDX-License-Identifier: MIT */
/* barrier.c - pthread_barrier_*: who reached it when, and how long each thread waited for the last. */
#include "wait.h"

static void report_error(pthread_barrier_t *barrier, int routine, int result, void *site)
{
	if (must_trace(BARRIER, BARRIER_ERROR))
		EMIT_WITH(BARRIER, BARRIER_ERROR, barrier_error, barrier, site, .routine = (uint16_t)routine,
			  .result = result);
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	void *site = CALL_SITE;

	if (!ptt_level(NPTL_DOMAIN_BARRIER))
		return ptt_real.pthread_barrier_wait(barrier);
	EMIT(BARRIER, BARRIER_WAIT_IN, barrier, site);
	{
		struct ptt_wait wait WAIT_GUARD =
			ptt_begin_wait(NPTL_DOMAIN_BARRIER, NPTL_EV_BARRIER_WAIT_OUT, barrier, site);

		wait.result = ptt_real.pthread_barrier_wait(barrier);
		return wait.result;
	}
}

static void report_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned int count, void *site)
{
	int shared = 0;

	if (attr)
		pthread_barrierattr_getpshared(attr, &shared);
	EMIT_WITH(BARRIER, BARRIER_INIT, barrier_init, barrier, site, .shared = (uint16_t)shared, .count = count);
}

EXPORT int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned int count)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(BARRIER, BARRIER_INIT_IN))
		EMIT_WITH(BARRIER, BARRIER_INIT_IN, barrier_init_in, barrier, site, .count = count,
			  .attr = (uintptr_t)attr);
	result = ptt_real.pthread_barrier_init(barrier, attr, count);
	if (result)
		report_error(barrier, NPTL_EV_BARRIER_INIT_IN, result, site);
	else if (must_trace(BARRIER, BARRIER_INIT))
		report_init(barrier, attr, count, site);
	if (must_trace(BARRIER, BARRIER_INIT_OUT))
		EMIT_WITH(BARRIER, BARRIER_INIT_OUT, barrier_init_out, barrier, site, .result = result);
	return result;
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(BARRIER, BARRIER_DESTROY_IN))
		EMIT(BARRIER, BARRIER_DESTROY_IN, barrier, site);
	result = ptt_real.pthread_barrier_destroy(barrier);
	if (result)
		report_error(barrier, NPTL_EV_BARRIER_DESTROY_IN, result, site);
	else if (must_trace(BARRIER, BARRIER_DESTROY))
		EMIT(BARRIER, BARRIER_DESTROY, barrier, site);
	if (must_trace(BARRIER, BARRIER_DESTROY_OUT))
		EMIT_WITH(BARRIER, BARRIER_DESTROY_OUT, barrier_destroy_out, barrier, site, .result = result);
	return result;
}
