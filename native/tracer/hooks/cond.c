/* SPDX-License-Identifier: MIT */
/* cond.c - pthread_cond_*: waits, with the mutex that they give up and take back inside the library, and signals. */
/*
 * Programs linked since glibc 2.3.2 ask for pthread_cond_*@GLIBC_2.3.2. The older functions, which only x86-64 still has,
 * take a condition of another shape, of which events have the address only. So there is one body of each routine, given
 * the real one to call, and at the end of the file the hooks of both.
 */
#include "mutex.h"
#include "wait.h"

typedef int init_routine(pthread_cond_t *cond, const pthread_condattr_t *attr);
typedef int wait_routine(pthread_cond_t *cond, pthread_mutex_t *mutex);
typedef int timedwait_routine(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
typedef int cond_routine(pthread_cond_t *cond); /* destroy, signal, broadcast */

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

static int wait_by(wait_routine *real, pthread_cond_t *cond, pthread_mutex_t *mutex, void *site)
{
	if (!ptt_wait_is_traced())
		return real(cond, mutex);
	if (must_trace(COND, COND_WAIT_IN))
		EMIT_WITH(COND, COND_WAIT_IN, cond_wait_in, cond, site, .mutex = ptt_ptr48(mutex));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_WAIT_OUT, site);

		wait.result = real(cond, mutex);
		return wait.result;
	}
}

static int timedwait_by(timedwait_routine *real, pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline, void *site)
{
	if (!ptt_wait_is_traced())
		return real(cond, mutex, deadline);
	if (must_trace(COND, COND_TIMEDWAIT_IN))
		EMIT_WITH(COND, COND_TIMEDWAIT_IN, cond_timedwait_in, cond, site, .mutex = ptt_ptr48(mutex),
			  .deadline_ns = ptt_ns(deadline));
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_TIMEDWAIT_OUT, site);

		wait.result = real(cond, mutex, deadline);
		return wait.result;
	}
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *deadline)
{
	void *site = CALL_SITE;

	if (!ptt_wait_is_traced())
		return ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
	if (must_trace(COND, COND_CLOCKWAIT_IN))
		EMIT_WITH(COND, COND_CLOCKWAIT_IN, cond_clockwait_in, cond, site, .mutex = ptt_ptr48(mutex),
			  .deadline_ns = ptt_ns(deadline), .clock = (uint16_t)clock);
	{
		struct ptt_wait wait WAIT_GUARD = begin(cond, mutex, NPTL_EV_COND_CLOCKWAIT_OUT, site);

		wait.result = ptt_real.pthread_cond_clockwait(cond, mutex, clock, deadline);
		return wait.result;
	}
}

/* ------------------------------------------------------------ signals */

static int signal_by(cond_routine *real, pthread_cond_t *cond, void *site)
{
	int result;

	if (ptt_level(NPTL_DOMAIN_COND) < NPTL_LEVEL_COND_SIGNAL)
		return real(cond);
	if (must_trace(COND, COND_SIGNAL_IN))
		EMIT(COND, COND_SIGNAL_IN, cond, site);
	/* before the wake-up that it causes */
	EMIT(COND, COND_SIGNAL, cond, site);
	result = real(cond);
	if (result)
		report_error(cond, NPTL_EV_COND_SIGNAL_IN, result, site);
	if (must_trace(COND, COND_SIGNAL_OUT))
		EMIT_WITH(COND, COND_SIGNAL_OUT, cond_signal_out, cond, site, .result = result);
	return result;
}

static int broadcast_by(cond_routine *real, pthread_cond_t *cond, void *site)
{
	int result;

	if (ptt_level(NPTL_DOMAIN_COND) < NPTL_LEVEL_COND_BROADCAST)
		return real(cond);
	if (must_trace(COND, COND_BROADCAST_IN))
		EMIT(COND, COND_BROADCAST_IN, cond, site);
	EMIT(COND, COND_BROADCAST, cond, site);
	result = real(cond);
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

static int init_by(init_routine *real, pthread_cond_t *cond, const pthread_condattr_t *attr, void *site)
{
	int result;

	if (must_trace(COND, COND_INIT_IN))
		EMIT_WITH(COND, COND_INIT_IN, cond_init_in, cond, site, .attr = (uintptr_t)attr);
	result = real(cond, attr);
	if (result)
		report_error(cond, NPTL_EV_COND_INIT_IN, result, site);
	else if (must_trace(COND, COND_INIT))
		report_init(cond, attr, site);
	if (must_trace(COND, COND_INIT_OUT))
		EMIT_WITH(COND, COND_INIT_OUT, cond_init_out, cond, site, .result = result);
	return result;
}

static int destroy_by(cond_routine *real, pthread_cond_t *cond, void *site)
{
	int result;

	if (must_trace(COND, COND_DESTROY_IN))
		EMIT(COND, COND_DESTROY_IN, cond, site);
	/* before the real one, which waits until the last waiter has left */
	if (must_trace(COND, COND_DESTROY))
		EMIT(COND, COND_DESTROY, cond, site);
	result = real(cond);
	if (result)
		report_error(cond, NPTL_EV_COND_DESTROY_IN, result, site);
	if (must_trace(COND, COND_DESTROY_OUT))
		EMIT_WITH(COND, COND_DESTROY_OUT, cond_destroy_out, cond, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ the present hooks and the older ones */

#define HOOK_COND(name, real, version, params, call)                       \
	EXPORT int name params;                                            \
	EXPORT int name params                                             \
	{                                                                  \
		return call;                                               \
	}                                                                  \
	VERSION_X86(name, real, version)

#define HOOKS(prefix, real, version)                                                                                      \
	HOOK_COND(prefix##init, pthread_cond_init, version, (pthread_cond_t * cond, const pthread_condattr_t *attr),      \
		  init_by(real.pthread_cond_init, cond, attr, CALL_SITE));                                                \
	HOOK_COND(prefix##destroy, pthread_cond_destroy, version, (pthread_cond_t * cond),                                \
		  destroy_by(real.pthread_cond_destroy, cond, CALL_SITE));                                                \
	HOOK_COND(prefix##wait, pthread_cond_wait, version, (pthread_cond_t * cond, pthread_mutex_t * mutex),             \
		  wait_by(real.pthread_cond_wait, cond, mutex, CALL_SITE));                                               \
	HOOK_COND(prefix##timedwait, pthread_cond_timedwait, version,                                                     \
		  (pthread_cond_t * cond, pthread_mutex_t * mutex, const struct timespec *deadline),                      \
		  timedwait_by(real.pthread_cond_timedwait, cond, mutex, deadline, CALL_SITE));                           \
	HOOK_COND(prefix##signal, pthread_cond_signal, version, (pthread_cond_t * cond),                                  \
		  signal_by(real.pthread_cond_signal, cond, CALL_SITE));                                                  \
	HOOK_COND(prefix##broadcast, pthread_cond_broadcast, version, (pthread_cond_t * cond),                            \
		  broadcast_by(real.pthread_cond_broadcast, cond, CALL_SITE))

HOOKS(ptt_cond_, ptt_real, "@@GLIBC_2.3.2");
#if defined(__x86_64__)
HOOKS(ptt_old_cond_, ptt_old, "@" PTT_OLD_VERSION);
#endif
