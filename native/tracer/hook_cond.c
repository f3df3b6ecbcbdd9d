/* SPDX-License-Identifier: MIT */
/* hook_cond.c - pthread_cond_*: waits, with the mutex that they give up and take back inside the library, and signals. */
#include "mutex.h"
#include "wait.h"

/* The hooks of the present layout; versions.c has the story. */
#define PRESENT(name) VERSION(ptt_cond_##name, pthread_cond_##name, "@@GLIBC_2.3.2")

EXPORT int ptt_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
EXPORT int ptt_cond_destroy(pthread_cond_t *cond);
EXPORT int ptt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
EXPORT int ptt_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
EXPORT int ptt_cond_signal(pthread_cond_t *cond);
EXPORT int ptt_cond_broadcast(pthread_cond_t *cond);

PRESENT(init);
PRESENT(destroy);
PRESENT(wait);
PRESENT(timedwait);
PRESENT(signal);
PRESENT(broadcast);

static void report_error(pthread_cond_t *cond, int routine, int result, void *site)
{
	if (must_trace(COND, COND_ERROR))
		EMIT_WITH(COND, COND_ERROR, cond_error, cond, site, .routine = (uint16_t)routine, .result = result);
}

/* ------------------------------------------------------------ waits */

/* Just before the real wait: it releases the mutex, so that is stamped first. */
static struct ptt_wait begin(pthread_cond_t *cond, pthread_mutex_t *mutex, char out, void *site)
{
	struct ptt_wait wait = ptt_begin_wait(NPTL_DOMAIN_COND, out, cond, site);

	/* a mutex that knows it is not the caller's makes the wait fail at once */
	wait.mutex = ptt_mutex_can_be_freed(mutex) ? mutex : NULL;
	if (wait.mutex && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	return wait;
}

EXPORT int ptt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	void *site = CALL_SITE;

	if (!ptt_level(NPTL_DOMAIN_COND))
		return ptt_real.pthread_cond_wait(cond, mutex);
	EMIT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond, site, .mutex = ptt_ptr48(mutex));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_WAIT_OUT, site);

		wait.result = ptt_real.pthread_cond_wait(cond, mutex);
		return wait.result;
	}
}

EXPORT int ptt_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline)
{
	void *site = CALL_SITE;

	if (!ptt_level(NPTL_DOMAIN_COND))
		return ptt_real.pthread_cond_timedwait(cond, mutex, deadline);
	EMIT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, cond, site, .mutex = ptt_ptr48(mutex),
		  .deadline_ns = ptt_ns(deadline));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_TIMEDWAIT_OUT, site);

		wait.result = ptt_real.pthread_cond_timedwait(cond, mutex, deadline);
		return wait.result;
	}
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *deadline)
{
	void *site = CALL_SITE;

	if (!ptt_level(NPTL_DOMAIN_COND))
		return ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
	EMIT_WITH(COND, COND_CLOCKWAIT_IN, cond_clockwait_in, cond, site, .mutex = ptt_ptr48(mutex),
		  .deadline_ns = ptt_ns(deadline), .clock = (uint16_t)clock);
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_CLOCKWAIT_OUT, site);

		wait.result = ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
		return wait.result;
	}
}

/* ------------------------------------------------------------ signals */

EXPORT int ptt_cond_signal(pthread_cond_t *cond)
{
	void *site = CALL_SITE;
	int result;

	if (ptt_level(NPTL_DOMAIN_COND) < NPTL_LEVEL_COND_SIGNAL)
		return ptt_real.pthread_cond_signal(cond);
	if (must_trace(COND, COND_SIGNAL_IN))
		EMIT(COND, COND_SIGNAL_IN, cond, site);
	/* before the wake-up that it causes */
	EMIT(COND, COND_SIGNAL, cond, site);
	result = ptt_real.pthread_cond_signal(cond);
	if (result)
		report_error(cond, NPTL_EV_COND_SIGNAL_IN, result, site);
	if (must_trace(COND, COND_SIGNAL_OUT))
		EMIT_WITH(COND, COND_SIGNAL_OUT, cond_signal_out, cond, site, .result = result);
	return result;
}

EXPORT int ptt_cond_broadcast(pthread_cond_t *cond)
{
	void *site = CALL_SITE;
	int result;

	if (ptt_level(NPTL_DOMAIN_COND) < NPTL_LEVEL_COND_BROADCAST)
		return ptt_real.pthread_cond_broadcast(cond);
	if (must_trace(COND, COND_BROADCAST_IN))
		EMIT(COND, COND_BROADCAST_IN, cond, site);
	EMIT(COND, COND_BROADCAST, cond, site);
	result = ptt_real.pthread_cond_broadcast(cond);
	if (result)
		report_error(cond, NPTL_EV_COND_BROADCAST_IN, result, site);
	if (must_trace(COND, COND_BROADCAST_OUT))
		EMIT_WITH(COND, COND_BROADCAST_OUT, cond_broadcast_out, cond, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ init, destroy */

static void report_init(pthread_cond_t *cond, const pthread_condattr_t *attr, void *site)
{
	clockid_t clock = CLOCK_REALTIME;
	int shared = 0;

	if (attr) {
		pthread_condattr_getclock(attr, &clock);
		pthread_condattr_getpshared(attr, &shared);
	}
	EMIT_WITH(COND, COND_INIT, cond_init, cond, site, .clock = (uint16_t)clock, .shared = (uint16_t)shared);
}

EXPORT int ptt_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(COND, COND_INIT_IN))
		EMIT_WITH(COND, COND_INIT_IN, cond_init_in, cond, site, .attr = (uintptr_t)attr);
	result = ptt_real.pthread_cond_init(cond, attr);
	if (result)
		report_error(cond, NPTL_EV_COND_INIT_IN, result, site);
	else if (must_trace(COND, COND_INIT))
		report_init(cond, attr, site);
	if (must_trace(COND, COND_INIT_OUT))
		EMIT_WITH(COND, COND_INIT_OUT, cond_init_out, cond, site, .result = result);
	return result;
}

EXPORT int ptt_cond_destroy(pthread_cond_t *cond)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(COND, COND_DESTROY_IN))
		EMIT(COND, COND_DESTROY_IN, cond, site);
	/* before the real one, which waits until the last waiter has left */
	if (must_trace(COND, COND_DESTROY))
		EMIT(COND, COND_DESTROY, cond, site);
	result = ptt_real.pthread_cond_destroy(cond);
	if (result)
		report_error(cond, NPTL_EV_COND_DESTROY_IN, result, site);
	if (must_trace(COND, COND_DESTROY_OUT))
		EMIT_WITH(COND, COND_DESTROY_OUT, cond_destroy_out, cond, site, .result = result);
	return result;
}
