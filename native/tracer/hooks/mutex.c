/* SPDX-License-Identifier: MIT */
/* mutex.c - pthread_mutex_*: taken, free, and who waits for whom. */
#include "deadline.h"
#include "mutex.h"

/* What a routine asks for; the number of its _IN event names it in error events. */
struct request {
	clockid_t clock; /* or UNTIMED, TIMED */
	const struct timespec *deadline;
	int routine;
};

static const struct request plain_lock = {.clock = UNTIMED, .routine = NPTL_EV_MUTEX_LOCK_IN};

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

static int lock_real(pthread_mutex_t *mutex, const struct request *r)
{
	switch (r->clock) {
	case UNTIMED:
		return ptt_real.pthread_mutex_lock(mutex);
	case TIMED:
		return ptt_real.pthread_mutex_timedlock(mutex, r->deadline);
	default:
		return ptt_real.pthread_mutex_clocklock(mutex, r->clock, r->deadline);
	}
}

/* With a bad deadline the real routine takes the mutex or refuses; which of them it does first differs. */
static bool never_waits(const struct request *r)
{
	return r->clock != UNTIMED && !ptt_deadline_valid(r->clock, r->deadline);
}

/*
 * Robust mutexes, and those with a priority ceiling, are not tried: pthread_mutex_trylock() of glibc leaves a mutex locked
 * that cannot be recovered, and links one that inherits priority differently to the list of those that the thread has; with
 * a ceiling it raises the thread's priority and, if the mutex is another's, lowers it again. A look says whether to expect
 * a wait. If it says no, and another thread is faster, a deadline long past makes a robust mutex come back with ETIMEDOUT,
 * in a state in which a lock would have begun to sleep. With a ceiling that would leave the priority raised: there the real
 * routine is called, and may block for once unreported.
 */
static COLD int try_special(pthread_mutex_t *mutex, const struct request *r)
{
	static const struct timespec long_past;
	int result;

	if (ptt_mutex_is_busy(mutex))
		return EBUSY;
	if ((ptt_mutex_kind(mutex) & PTT_MUTEX_CEILING) || ptt_try_lock == ptt_lock_if_free || never_waits(r))
		return lock_real(mutex, r);
	result = ptt_real.pthread_mutex_timedlock(mutex, &long_past);
	return result == ETIMEDOUT ? EBUSY : result;
}

/* Take the mutex if it can be had at once. Return: EBUSY if it cannot, else what the real routine returns. */
static inline __attribute__((always_inline)) int try_to_take(pthread_mutex_t *mutex, const struct request *r)
{
	if (unlikely(ptt_mutex_kind(mutex) & (PTT_MUTEX_ROBUST | PTT_MUTEX_CEILING)))
		return try_special(mutex, r);
	return ptt_try_lock(mutex);
}

/* The mutex could not be had at once: say so, then do what the program asked for. */
static COLD int take_contended(pthread_mutex_t *mutex, const struct request *r, int tried, void *site)
{
	uint64_t began = 0;
	int result = tried;

	if (tried == EBUSY) {
		began = report_wait(mutex, r->clock != UNTIMED, site);
		result = lock_real(mutex, r);
	}
	report_taken(mutex, result, began, site);
	if (result && result != EOWNERDEAD && result != ETIMEDOUT)
		report_error(mutex, r->routine, result, site);
	return result;
}

/* Into the hook, whose call site is then looked at when it is wanted, and not kept in a register before. */
static inline __attribute__((always_inline)) int lock(pthread_mutex_t *mutex)
{
	int result = try_to_take(mutex, &plain_lock);

	if (unlikely(result))
		return take_contended(mutex, &plain_lock, result, CALL_SITE);
	EMIT(MUTEX, MUTEX_TAKEN, mutex, CALL_SITE);
	return 0;
}

/* Where only waits are reported. */
static __attribute__((noinline)) int lock_silently(pthread_mutex_t *mutex, void *site)
{
	int result = try_to_take(mutex, &plain_lock);

	return unlikely(result) ? take_contended(mutex, &plain_lock, result, site) : 0;
}

static COLD int lock_in_full(pthread_mutex_t *mutex, void *site)
{
	int result;

	EMIT(MUTEX, MUTEX_LOCK_IN, mutex, site);
	result = try_to_take(mutex, &plain_lock);
	if (result)
		result = take_contended(mutex, &plain_lock, result, site);
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
	/* one comparison for the level that there is mostly */
	if (likely(level == NPTL_LEVEL_MUTEX_TAKEN))
		return lock(mutex);
	return level < NPTL_LEVEL_MUTEX_TAKEN ? lock_silently(mutex, CALL_SITE) : lock_in_full(mutex, CALL_SITE);
}
_Static_assert(NPTL_LEVEL_MUTEX_LOCK_IN == NPTL_LEVEL_MUTEX_TAKEN + 1, "no level between them");

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

static int lock_until(pthread_mutex_t *mutex, const struct request *r, void *site)
{
	int result = try_to_take(mutex, r);

	if (result)
		return take_contended(mutex, r, result, site);
	report_tried(mutex, site);
	return 0;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	struct request r = {.clock = TIMED, .deadline = deadline, .routine = NPTL_EV_MUTEX_TIMEDLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_MUTEX))
		return ptt_real.pthread_mutex_timedlock(mutex, deadline);
	if (must_trace(MUTEX, MUTEX_TIMEDLOCK_IN))
		EMIT_WITH(MUTEX, MUTEX_TIMEDLOCK_IN, mutex_timedlock_in, mutex, site, .deadline_ns = ptt_ns(deadline));
	result = lock_until(mutex, &r, site);
	if (must_trace(MUTEX, MUTEX_TIMEDLOCK_OUT))
		EMIT_WITH(MUTEX, MUTEX_TIMEDLOCK_OUT, mutex_timedlock_out, mutex, site, .result = result);
	return result;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	struct request r = {.clock = clock, .deadline = deadline, .routine = NPTL_EV_MUTEX_CLOCKLOCK_IN};
	void *site = CALL_SITE;
	int result;

	/* a clock it does not take: the real function says so, whatever the state of the mutex */
	if (!ptt_level(NPTL_DOMAIN_MUTEX) || !ptt_clock_valid(clock))
		return ptt_real.pthread_mutex_clocklock(mutex, clock, deadline);
	if (must_trace(MUTEX, MUTEX_CLOCKLOCK_IN))
		EMIT_WITH(MUTEX, MUTEX_CLOCKLOCK_IN, mutex_clocklock_in, mutex, site, .clock = (uint16_t)clock,
			  .deadline_ns = ptt_ns(deadline));
	result = lock_until(mutex, &r, site);
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
	/* an adaptive mutex checks no owner either, which unlock_checked() sees */
	if (unlikely(ptt_mutex_kind(mutex) & PTT_MUTEX_CHECKS))
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
