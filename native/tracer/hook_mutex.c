/* SPDX-License-Identifier: MIT */
/* hook_mutex.c - pthread_mutex_*: taken, free, and who waits for whom. */
#include "mutex.h"

static void report_taken(pthread_mutex_t *mutex, int result, uint64_t began, void *site)
{
	bool taken = result == 0 || result == EOWNERDEAD;

	if (taken && result == 0 && !began) {
		if (must_trace(MUTEX, MUTEX_TAKEN))
			EMIT(MUTEX, MUTEX_TAKEN, mutex, site);
	} else if (taken) {
		if (must_trace(MUTEX, MUTEX_TAKEN_WAITED))
			EMIT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, mutex, site, .result = result,
				  .wait_ns = began ? ptt_now_ns() - began : 0);
	} else if (began) {
		if (must_trace(MUTEX, MUTEX_WAIT_END))
			EMIT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, mutex, site, .result = result,
				  .wait_ns = ptt_now_ns() - began);
	}
}

static void report_error(pthread_mutex_t *mutex, int routine, int result, void *site)
{
	if (must_trace(MUTEX, MUTEX_ERROR))
		EMIT_WITH(MUTEX, MUTEX_ERROR, mutex_error, mutex, site, .routine = (uint16_t)routine, .result = result);
}

/* Taken by a routine that would not have waited for ever. */
static void report_tried(pthread_mutex_t *mutex, void *site)
{
	if (must_trace(MUTEX, MUTEX_TAKEN_TRIED))
		EMIT(MUTEX, MUTEX_TAKEN_TRIED, mutex, site);
}

/* About to block, @timed: with a deadline. Return: when that was, for the duration of the wait. */
static uint64_t report_wait(pthread_mutex_t *mutex, bool timed, void *site)
{
	EMIT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, mutex, site, .owner = ptt_mutex_owner(mutex),
		  .kind = ptt_mutex_kind(mutex), .timed = timed);
	return ptt_now_ns();
}

/* ------------------------------------------------------------ lock */

/* The mutex could not be had at once: say so, then do what the program asked for. */
static COLD int lock_contended(pthread_mutex_t *mutex, int tried, void *site)
{
	uint64_t began = 0;
	int result = tried;

	if (tried == EBUSY) {
		began = report_wait(mutex, false, site);
		result = ptt_real.pthread_mutex_lock(mutex);
	}
	report_taken(mutex, result, began, site);
	if (result && result != EOWNERDEAD)
		report_error(mutex, NPTL_EV_MUTEX_LOCK_IN, result, site);
	return result;
}

/* Into the hook, whose call site is then looked at when it is wanted, and not kept in a register before. */
static inline __attribute__((always_inline)) int lock(pthread_mutex_t *mutex)
{
	int result = ptt_try_lock(mutex);

	if (unlikely(result))
		return lock_contended(mutex, result, CALL_SITE);
	EMIT(MUTEX, MUTEX_TAKEN, mutex, CALL_SITE);
	return 0;
}

/* Where only waits are told of. */
static inline __attribute__((always_inline)) int lock_silently(pthread_mutex_t *mutex)
{
	int result = ptt_try_lock(mutex);

	return unlikely(result) ? lock_contended(mutex, result, CALL_SITE) : 0;
}

static COLD int lock_in_full(pthread_mutex_t *mutex, void *site)
{
	int result;

	EMIT(MUTEX, MUTEX_LOCK_IN, mutex, site);
	result = ptt_try_lock(mutex);
	if (result)
		result = lock_contended(mutex, result, site);
	else
		EMIT(MUTEX, MUTEX_TAKEN, mutex, site);
	EMIT_WITH(MUTEX, MUTEX_LOCK_OUT, mutex_lock_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	uint32_t level = ptt_level(NPTL_DOMAIN_MUTEX);

	if (!level)
		return ptt_real.pthread_mutex_lock(mutex);
	if (unlikely(level >= NPTL_LEVEL_MUTEX_LOCK_IN))
		return lock_in_full(mutex, CALL_SITE);
	return likely(level >= NPTL_LEVEL_MUTEX_TAKEN) ? lock(mutex) : lock_silently(mutex);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_MUTEX))
		return ptt_real.pthread_mutex_trylock(mutex);
	if (must_trace(MUTEX, MUTEX_TRYLOCK_IN))
		EMIT(MUTEX, MUTEX_TRYLOCK_IN, mutex, site);
	result = ptt_real.pthread_mutex_trylock(mutex);
	if (result == 0)
		report_tried(mutex, site);
	else
		report_taken(mutex, result, 0, site);
	if (result && result != EBUSY && result != EOWNERDEAD)
		report_error(mutex, NPTL_EV_MUTEX_TRYLOCK_IN, result, site);
	if (must_trace(MUTEX, MUTEX_TRYLOCK_OUT))
		EMIT_WITH(MUTEX, MUTEX_TRYLOCK_OUT, mutex_trylock_out, mutex, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ timed locks */

/* A lock with a deadline: @clock < 0 is pthread_mutex_timedlock. */
static int lock_until(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline, void *site)
{
	int result = ptt_real.pthread_mutex_trylock(mutex);
	uint64_t began = 0;

	if (result == 0) {
		report_tried(mutex, site);
		return 0;
	}
	if (result == EBUSY) {
		began = report_wait(mutex, true, site);
		result = clock < 0 ? ptt_real.pthread_mutex_timedlock(mutex, deadline)
				   : ptt_real.pthread_mutex_clocklock(mutex, clock, deadline);
	}
	report_taken(mutex, result, began, site);
	if (result && result != EOWNERDEAD && result != ETIMEDOUT)
		report_error(mutex, clock < 0 ? NPTL_EV_MUTEX_TIMEDLOCK_IN : NPTL_EV_MUTEX_CLOCKLOCK_IN, result, site);
	return result;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_MUTEX))
		return ptt_real.pthread_mutex_timedlock(mutex, deadline);
	if (must_trace(MUTEX, MUTEX_TIMEDLOCK_IN))
		EMIT_WITH(MUTEX, MUTEX_TIMEDLOCK_IN, mutex_timedlock_in, mutex, site, .deadline_ns = ptt_ns(deadline));
	result = lock_until(mutex, -1, deadline, site);
	if (must_trace(MUTEX, MUTEX_TIMEDLOCK_OUT))
		EMIT_WITH(MUTEX, MUTEX_TIMEDLOCK_OUT, mutex_timedlock_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	void *site = CALL_SITE;
	int result;

	/* a clock it does not take: the real function says so, whatever the state of the mutex */
	if (!ptt_level(NPTL_DOMAIN_MUTEX) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return ptt_real.pthread_mutex_clocklock(mutex, clock, deadline);
	if (must_trace(MUTEX, MUTEX_CLOCKLOCK_IN))
		EMIT_WITH(MUTEX, MUTEX_CLOCKLOCK_IN, mutex_clocklock_in, mutex, site, .clock = (uint16_t)clock,
			  .deadline_ns = ptt_ns(deadline));
	result = lock_until(mutex, clock, deadline, site);
	if (must_trace(MUTEX, MUTEX_CLOCKLOCK_OUT))
		EMIT_WITH(MUTEX, MUTEX_CLOCKLOCK_OUT, mutex_clocklock_out, mutex, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ unlock */

static COLD int unlock_checked(pthread_mutex_t *mutex, void *site)
{
	bool expected = ptt_mutex_can_be_freed(mutex);
	int result;

	if (expected && must_trace(MUTEX, MUTEX_FREE))
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	result = ptt_real.pthread_mutex_unlock(mutex);
	if (result)
		report_error(mutex, NPTL_EV_MUTEX_UNLOCK_IN, result, site);
	else if (unlikely(!expected) && must_trace(MUTEX, MUTEX_FREE))
		/* a child of clone() is its parent still to the library, which goes by a thread id that it keeps */
		EMIT(MUTEX, MUTEX_FREE, mutex, site);
	return result;
}

static COLD int unlock_in_full(pthread_mutex_t *mutex, void *site)
{
	int result;

	EMIT(MUTEX, MUTEX_UNLOCK_IN, mutex, site);
	result = unlock_checked(mutex, site);
	EMIT_WITH(MUTEX, MUTEX_UNLOCK_OUT, mutex_unlock_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	uint32_t level = ptt_level(NPTL_DOMAIN_MUTEX);

	if (level < NPTL_LEVEL_MUTEX_FREE)
		return ptt_real.pthread_mutex_unlock(mutex);
	if (unlikely(level >= NPTL_LEVEL_MUTEX_UNLOCK_IN))
		return unlock_in_full(mutex, CALL_SITE);
	if (unlikely(ptt_mutex_checks_owner(mutex)))
		return unlock_checked(mutex, CALL_SITE);
	/* stamped before the release, so that the next holder's time is later */
	EMIT(MUTEX, MUTEX_FREE, mutex, CALL_SITE);
	return ptt_real.pthread_mutex_unlock(mutex);
}

/* ------------------------------------------------------------ init, destroy, consistent */

static void report_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr, void *site)
{
	int kind = PTHREAD_MUTEX_DEFAULT, protocol = 0, shared = 0, robust = 0;

	if (attr) {
		pthread_mutexattr_gettype(attr, &kind);
		pthread_mutexattr_getprotocol(attr, &protocol);
		pthread_mutexattr_getpshared(attr, &shared);
		pthread_mutexattr_getrobust(attr, &robust);
	}
	EMIT_WITH(MUTEX, MUTEX_INIT, mutex_init, mutex, site, .kind = (uint16_t)kind, .protocol = (uint16_t)protocol,
		  .shared = (uint16_t)shared, .robust = (uint16_t)robust);
}

EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(MUTEX, MUTEX_INIT_IN))
		EMIT_WITH(MUTEX, MUTEX_INIT_IN, mutex_init_in, mutex, site, .attr = (uintptr_t)attr);
	result = ptt_real.pthread_mutex_init(mutex, attr);
	if (result)
		report_error(mutex, NPTL_EV_MUTEX_INIT_IN, result, site);
	else if (must_trace(MUTEX, MUTEX_INIT))
		report_init(mutex, attr, site);
	if (must_trace(MUTEX, MUTEX_INIT_OUT))
		EMIT_WITH(MUTEX, MUTEX_INIT_OUT, mutex_init_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(MUTEX, MUTEX_DESTROY_IN))
		EMIT(MUTEX, MUTEX_DESTROY_IN, mutex, site);
	result = ptt_real.pthread_mutex_destroy(mutex);
	if (result)
		report_error(mutex, NPTL_EV_MUTEX_DESTROY_IN, result, site);
	else if (must_trace(MUTEX, MUTEX_DESTROY))
		EMIT(MUTEX, MUTEX_DESTROY, mutex, site);
	if (must_trace(MUTEX, MUTEX_DESTROY_OUT))
		EMIT_WITH(MUTEX, MUTEX_DESTROY_OUT, mutex_destroy_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(MUTEX, MUTEX_CONSISTENT_IN))
		EMIT(MUTEX, MUTEX_CONSISTENT_IN, mutex, site);
	result = ptt_real.pthread_mutex_consistent(mutex);
	if (result)
		report_error(mutex, NPTL_EV_MUTEX_CONSISTENT_IN, result, site);
	else if (must_trace(MUTEX, MUTEX_CONSISTENT))
		EMIT(MUTEX, MUTEX_CONSISTENT, mutex, site);
	if (must_trace(MUTEX, MUTEX_CONSISTENT_OUT))
		EMIT_WITH(MUTEX, MUTEX_CONSISTENT_OUT, mutex_consistent_out, mutex, site, .result = result);
	return result;
}
