/* SPDX-License-Identifier: MIT */
/* mutex.c - how a mutex is taken and released: reports holds, waits, and the owner that is waited for. */
#include "bodies.h"
#include "mutex.h"

static const struct ptt_request plain_lock = {.clock = UNTIMED, .routine = NPTL_EV_MUTEX_LOCK_IN};

static void report_taken(pthread_mutex_t *mutex, int result, uint64_t began, void *site)
{
	bool taken = result == 0 || result == EOWNERDEAD;

	if (taken && result == 0 && !began) {
		REPORT(MUTEX, MUTEX_TAKEN, mutex, site);
	} else if (taken) {
		REPORT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, mutex, site, .result = result,
			    .wait_ns = began ? ptt_now_ns() - began : 0);
	} else if (began) {
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, mutex, site, .result = result,
			    .wait_ns = ptt_now_ns() - began);
	}
}

/* About to block, @timed: with a deadline. Return: when that was, for the duration of the wait; 0: nothing was reported. */
static uint64_t report_wait(pthread_mutex_t *mutex, bool timed, void *site)
{
	if (ptt_in_lock)
		return 0;
	EMIT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, mutex, site, .owner = ptt_mutex_owner(mutex),
		  .kind = ptt_mutex_kind(mutex), .timed = timed);
	return ptt_now_ns();
}

/* ------------------------------------------------------------ lock */

static int lock_real(pthread_mutex_t *mutex, const struct ptt_request *r)
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

/*
 * Robust mutexes, and mutexes with a priority ceiling, are not tried. pthread_mutex_trylock() of glibc leaves a mutex locked that
 * cannot be recovered. It links a mutex that inherits priority differently to the list of mutexes that the thread has. With a ceiling
 * it raises the thread's priority and, if another thread has the mutex, lowers it again. A look says whether to expect a wait. If it
 * says no, and another thread is faster, a deadline long past makes a robust mutex come back with ETIMEDOUT, in a state in which a lock
 * would have begun to sleep. With a ceiling that would leave the priority raised: there the real routine is called, and may block for
 * once unreported.
 */
static COLD int try_special(pthread_mutex_t *mutex, const struct ptt_request *r)
{
	static const struct timespec long_past;
	int result;

	if (ptt_mutex_is_busy(mutex))
		return EBUSY;
	/* with a bad deadline the real routine takes the mutex or refuses; what it does first differs */
	if ((ptt_mutex_kind(mutex) & PTT_MUTEX_CEILING) || ptt_try_lock == ptt_lock_if_free || !ptt_request_is_valid(r))
		return lock_real(mutex, r);
	result = ptt_real.pthread_mutex_timedlock(mutex, &long_past);
	return result == ETIMEDOUT ? EBUSY : result;
}

/* Take the mutex if it can be had at once. Return: EBUSY if it cannot, else what the real routine returns. */
static inline __attribute__((always_inline)) int try_to_take(pthread_mutex_t *mutex, const struct ptt_request *r)
{
	if (unlikely(ptt_mutex_kind(mutex) & (PTT_MUTEX_ROBUST | PTT_MUTEX_CEILING)))
		return try_special(mutex, r);
	return ptt_try_lock(mutex);
}

/* The mutex could not be had at once: say so, then do what the program asked for. */
static COLD int take_contended(pthread_mutex_t *mutex, const struct ptt_request *r, int tried, void *site)
{
	uint64_t began = 0;
	int result = tried;

	if (tried == EBUSY) {
		began = report_wait(mutex, ptt_request_is_timed(r), site);
		result = lock_real(mutex, r);
	}
	report_taken(mutex, result, began, site);
	if (result && result != EOWNERDEAD && result != ETIMEDOUT)
		REPORT_ERROR(MUTEX, mutex, r->routine, result, site);
	return result;
}

/* Where somebody has had to wait for a lock. */
static __attribute__((noinline)) int lock_after_other(pthread_mutex_t *mutex, void *site)
{
	int result;

	ptt_before_lock(mutex, site);
	result = try_to_take(mutex, &plain_lock);
	if (unlikely(result))
		return take_contended(mutex, &plain_lock, result, site);
	EMIT(MUTEX, MUTEX_TAKEN, mutex, site);
	return 0;
}

/* Into the hook, whose call site is then looked at when it is wanted, and not kept in a register before. */
static inline __attribute__((always_inline)) int lock(pthread_mutex_t *mutex)
{
	int result;

	if (unlikely(__atomic_load_n(&ptt_before_lock_is_tried, __ATOMIC_RELAXED)))
		return lock_after_other(mutex, CALL_SITE);
	result = try_to_take(mutex, &plain_lock);
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
	ptt_before_lock(mutex, site);
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
ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
_Static_assert(NPTL_LEVEL_MUTEX_LOCK_IN == NPTL_LEVEL_MUTEX_TAKEN + 1, "no level between them");

/* A mutex that is free counts as tried: the routine would not have waited for ever. */
int ptt_mutex_take(pthread_mutex_t *mutex, const struct ptt_request *r, void *site)
{
	int result;

	if (must_trace(MUTEX, MUTEX_TAKEN_TRIED))
		ptt_before_lock(mutex, site);
	result = try_to_take(mutex, r);
	if (result)
		return take_contended(mutex, r, result, site);
	REPORT(MUTEX, MUTEX_TAKEN_TRIED, mutex, site);
	return 0;
}

/* ------------------------------------------------------------ unlock */

static COLD int unlock_checked(pthread_mutex_t *mutex, void *site)
{
	bool expected = ptt_mutex_can_be_freed(mutex);
	int result;

	if (expected)
		REPORT(MUTEX, MUTEX_FREE, mutex, site);
	result = ptt_real.pthread_mutex_unlock(mutex);
	if (result)
		REPORT_ERROR(MUTEX, mutex, NPTL_EV_MUTEX_UNLOCK_IN, result, site);
	else if (unlikely(!expected))
		/* a child of clone() is its parent still to the library, which goes by a thread id that it keeps */
		REPORT(MUTEX, MUTEX_FREE, mutex, site);
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
ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* ------------------------------------------------------------ priority ceiling */

/* Takes the mutex inside the library, without raising the priority, and releases it: it can wait, and holds nothing after. */
EXPORT int pthread_mutex_setprioceiling(pthread_mutex_t *mutex, int ceiling, int *old)
{
	void *site = CALL_SITE;
	uint64_t began = 0;
	int result;

	if (!ptt_level(NPTL_DOMAIN_MUTEX))
		return ptt_real.pthread_mutex_setprioceiling(mutex, ceiling, old);
	REPORT_WITH(MUTEX, MUTEX_SETPRIOCEILING_IN, mutex_setprioceiling_in, mutex, site, .ceiling = ceiling);
	if ((ptt_mutex_kind(mutex) & PTT_MUTEX_CEILING) && ptt_mutex_is_busy(mutex))
		began = report_wait(mutex, false, site);
	result = ptt_real.pthread_mutex_setprioceiling(mutex, ceiling, old);
	if (began)
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, mutex, site, .result = result,
			    .wait_ns = ptt_now_ns() - began);
	if (result)
		REPORT_ERROR(MUTEX, mutex, NPTL_EV_MUTEX_SETPRIOCEILING_IN, result, site);
	else
		REPORT_WITH(MUTEX, MUTEX_CEILING, mutex_ceiling, mutex, site, .ceiling = ceiling);
	REPORT_RESULT(MUTEX, MUTEX_SETPRIOCEILING_OUT, mutex, result, site);
	return result;
}
