/* SPDX-License-Identifier: MIT */
/* mutex.c - hooks that take and release a mutex: report holds, waits, and the owner during a wait. */
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

/* The thread is about to block. @timed: with a deadline. Return: the begin of the wait; 0: the wait is not reported. */
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
 * Do not try robust mutexes, nor mutexes with a priority ceiling. glibc's pthread_mutex_trylock() leaves a mutex
 * locked that cannot be recovered. It links a mutex with priority inheritance differently into the thread's list.
 * With a ceiling it raises the thread's priority, and lowers it again if another thread has the mutex. So read the
 * mutex to see whether to expect a wait. If not, and another thread is faster, a deadline in the past makes a robust
 * mutex return ETIMEDOUT. Then the mutex is in the state just before lock would sleep. With a ceiling such a
 * deadline would leave the priority raised. So call the real routine there: in this rare case it may block
 * unreported.
 */
static COLD int try_special(pthread_mutex_t *mutex, const struct ptt_request *r)
{
	static const struct timespec long_past;
	int result;

	if (ptt_mutex_is_busy(mutex))
		return EBUSY;
	/* with a bad deadline, the real routine takes the mutex or refuses; the order of its checks differs */
	if ((ptt_mutex_kind(mutex) & PTT_MUTEX_CEILING) || ptt_try_lock == ptt_lock_if_free || !ptt_request_is_valid(r))
		return lock_real(mutex, r);
	result = ptt_real.pthread_mutex_timedlock(mutex, &long_past);
	return result == ETIMEDOUT ? EBUSY : result;
}

/* Take the mutex if it is free. Return: EBUSY if it is not, else the result of the real routine. */
static inline __attribute__((always_inline)) int try_to_take(pthread_mutex_t *mutex, const struct ptt_request *r)
{
	if (unlikely(ptt_mutex_kind(mutex) & (PTT_MUTEX_ROBUST | PTT_MUTEX_CEILING)))
		return try_special(mutex, r);
	return ptt_try_lock(mutex);
}

/* The mutex was not free, or the try failed: report the wait or the error, and make the real call. */
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

/* As lock(), once the handler wants a call before each try: any thread has waited for a lock, or a plan holds threads back. */
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

/* Inlined into the hook, so that CALL_SITE is read only when it is needed, and occupies no register before. */
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

/* At the level that reports only waits. */
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
	/* a single comparison at the usual level */
	if (likely(level == NPTL_LEVEL_MUTEX_TAKEN))
		return lock(mutex);
	return level < NPTL_LEVEL_MUTEX_TAKEN ? lock_silently(mutex, CALL_SITE) : lock_in_full(mutex, CALL_SITE);
}
ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
_Static_assert(NPTL_LEVEL_MUTEX_LOCK_IN == NPTL_LEVEL_MUTEX_TAKEN + 1, "no level between them");

/* A free mutex counts as tried: a timed routine does not wait for ever. */
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
		/* in a child of clone() the library still has the parent's thread id, and accepts the release */
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

/* At the level that reports only waits. */
static __attribute__((noinline)) int unlock_silently(pthread_mutex_t *mutex, void *site)
{
	ptt_mutex_report_awaited(mutex, site);
	return ptt_real.pthread_mutex_unlock(mutex);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	uint32_t level = ptt_level(NPTL_DOMAIN_MUTEX);

	if (!level)
		return ptt_real.pthread_mutex_unlock(mutex);
	/* a single comparison at the usual level */
	if (unlikely(level != NPTL_LEVEL_MUTEX_FREE))
		return level < NPTL_LEVEL_MUTEX_FREE ? unlock_silently(mutex, CALL_SITE) : unlock_in_full(mutex, CALL_SITE);
	/* an adaptive mutex does not check its owner either; unlock_checked() knows */
	if (unlikely(ptt_mutex_kind(mutex) & PTT_MUTEX_CHECKS))
		return unlock_checked(mutex, CALL_SITE);
	/* stamped before the release, so that the next holder's time is later */
	EMIT(MUTEX, MUTEX_FREE, mutex, CALL_SITE);
	return ptt_real.pthread_mutex_unlock(mutex);
}
ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);
_Static_assert(NPTL_LEVEL_MUTEX_UNLOCK_IN == NPTL_LEVEL_MUTEX_FREE + 1, "no level between them");

/* ------------------------------------------------------------ priority ceiling */

/*
 * The library takes the mutex inside this call, without raising the priority, and releases it. So the call may wait,
 * but the caller holds nothing afterwards.
 */
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
