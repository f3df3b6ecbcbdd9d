/* SPDX-License-Identifier: MIT */
/* rwlock.c - pthread_rwlock_*: taken for reading or writing, free, and who keeps whom waiting. */
#include "deadline.h"
#include "tracer.h"

/* What a routine asks for; the number of its _IN event names it in error events. */
struct request {
	bool write;
	clockid_t clock; /* or UNTIMED, TIMED */
	const struct timespec *deadline;
	int routine;
};

static void report_error(pthread_rwlock_t *rwlock, int routine, int result, void *site)
{
	if (must_trace(RWLOCK, RWLOCK_ERROR))
		EMIT_WITH(RWLOCK, RWLOCK_ERROR, rwlock_error, rwlock, site, .routine = (uint16_t)routine,
			  .result = result);
}

/* ------------------------------------------------------------ taking */

static inline void report_taken(pthread_rwlock_t *rwlock, bool write, void *site)
{
	if (!must_trace(RWLOCK, RWLOCK_TAKEN_READ))
		return;
	if (write)
		EMIT(RWLOCK, RWLOCK_TAKEN_WRITE, rwlock, site);
	else
		EMIT(RWLOCK, RWLOCK_TAKEN_READ, rwlock, site);
}

/* Taken by a routine that would not have waited for ever. */
static void report_tried(pthread_rwlock_t *rwlock, bool write, void *site)
{
	if (!must_trace(RWLOCK, RWLOCK_TAKEN_READ_TRIED))
		return;
	if (write)
		EMIT(RWLOCK, RWLOCK_TAKEN_WRITE_TRIED, rwlock, site);
	else
		EMIT(RWLOCK, RWLOCK_TAKEN_READ_TRIED, rwlock, site);
}

static void report_wait_end(pthread_rwlock_t *rwlock, bool write, int result, uint64_t began, void *site)
{
	uint64_t waited = ptt_now_ns() - began;

	if (!must_trace(RWLOCK, RWLOCK_WAIT_END))
		return;
	if (result)
		EMIT_WITH(RWLOCK, RWLOCK_WAIT_END, rwlock_wait_end, rwlock, site, .result = result, .wait_ns = waited);
	else if (write)
		EMIT_WITH(RWLOCK, RWLOCK_TAKEN_WRITE_WAITED, rwlock_taken_write_waited, rwlock, site,
			  .wait_ns = waited);
	else
		EMIT_WITH(RWLOCK, RWLOCK_TAKEN_READ_WAITED, rwlock_taken_read_waited, rwlock, site, .wait_ns = waited);
}

static int try_real(pthread_rwlock_t *rwlock, bool write)
{
	return write ? ptt_real.pthread_rwlock_trywrlock(rwlock) : ptt_real.pthread_rwlock_tryrdlock(rwlock);
}

static int lock_real(pthread_rwlock_t *rwlock, const struct request *r)
{
	switch (r->clock) {
	case UNTIMED:
		return r->write ? ptt_real.pthread_rwlock_wrlock(rwlock) : ptt_real.pthread_rwlock_rdlock(rwlock);
	case TIMED:
		return r->write ? ptt_real.pthread_rwlock_timedwrlock(rwlock, r->deadline)
				: ptt_real.pthread_rwlock_timedrdlock(rwlock, r->deadline);
	default:
		return r->write ? ptt_real.pthread_rwlock_clockwrlock(rwlock, r->clock, r->deadline)
				: ptt_real.pthread_rwlock_clockrdlock(rwlock, r->clock, r->deadline);
	}
}

/* The writer and the number of readers, as glibc keeps them in the lock. */
static void report_wait(pthread_rwlock_t *rwlock, const struct request *r, void *site)
{
	EMIT_WITH(RWLOCK, RWLOCK_WAIT, rwlock_wait, rwlock, site, .write = r->write, .timed = r->clock != UNTIMED,
		  .owner = (uint32_t)__atomic_load_n(&rwlock->__data.__cur_writer, __ATOMIC_RELAXED),
		  .readers = __atomic_load_n(&rwlock->__data.__readers, __ATOMIC_RELAXED) >> 3);
}

static COLD int take_contended(pthread_rwlock_t *rwlock, const struct request *r, int result, void *site)
{
	uint64_t began = 0;

	if (result == EBUSY) {
		report_wait(rwlock, r, site);
		began = ptt_now_ns();
		result = lock_real(rwlock, r);
		report_wait_end(rwlock, r->write, result, began, site);
	}
	if (result && result != ETIMEDOUT)
		report_error(rwlock, r->routine, result, site);
	return result;
}

static int take(pthread_rwlock_t *rwlock, const struct request *r, void *site)
{
	int result;

	/* the real function refuses these, whatever the state of the lock */
	if (r->clock != UNTIMED && !ptt_deadline_valid(r->clock, r->deadline)) {
		result = lock_real(rwlock, r);
		if (result)
			report_error(rwlock, r->routine, result, site);
		return result;
	}
	result = try_real(rwlock, r->write);
	if (unlikely(result))
		return take_contended(rwlock, r, result, site);
	if (unlikely(r->clock != UNTIMED))
		report_tried(rwlock, r->write, site);
	else
		report_taken(rwlock, r->write, site);
	return 0;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	static const struct request r = {.clock = UNTIMED, .routine = NPTL_EV_RWLOCK_RDLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_rdlock(rwlock);
	if (must_trace(RWLOCK, RWLOCK_RDLOCK_IN))
		EMIT(RWLOCK, RWLOCK_RDLOCK_IN, rwlock, site);
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_RDLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_RDLOCK_OUT, rwlock_rdlock_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	static const struct request r = {.write = true, .clock = UNTIMED, .routine = NPTL_EV_RWLOCK_WRLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_wrlock(rwlock);
	if (must_trace(RWLOCK, RWLOCK_WRLOCK_IN))
		EMIT(RWLOCK, RWLOCK_WRLOCK_IN, rwlock, site);
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_WRLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_WRLOCK_OUT, rwlock_wrlock_out, rwlock, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ trying */

static int try_take(pthread_rwlock_t *rwlock, bool write, int routine, void *site)
{
	int result = try_real(rwlock, write);

	if (!result)
		report_tried(rwlock, write, site);
	else if (result != EBUSY)
		report_error(rwlock, routine, result, site);
	return result;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_tryrdlock(rwlock);
	if (must_trace(RWLOCK, RWLOCK_TRYRDLOCK_IN))
		EMIT(RWLOCK, RWLOCK_TRYRDLOCK_IN, rwlock, site);
	result = try_take(rwlock, false, NPTL_EV_RWLOCK_TRYRDLOCK_IN, site);
	if (must_trace(RWLOCK, RWLOCK_TRYRDLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_TRYRDLOCK_OUT, rwlock_tryrdlock_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_trywrlock(rwlock);
	if (must_trace(RWLOCK, RWLOCK_TRYWRLOCK_IN))
		EMIT(RWLOCK, RWLOCK_TRYWRLOCK_IN, rwlock, site);
	result = try_take(rwlock, true, NPTL_EV_RWLOCK_TRYWRLOCK_IN, site);
	if (must_trace(RWLOCK, RWLOCK_TRYWRLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_TRYWRLOCK_OUT, rwlock_trywrlock_out, rwlock, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ with a deadline */

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	struct request r = {.clock = TIMED, .deadline = deadline, .routine = NPTL_EV_RWLOCK_TIMEDRDLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_timedrdlock(rwlock, deadline);
	if (must_trace(RWLOCK, RWLOCK_TIMEDRDLOCK_IN))
		EMIT_WITH(RWLOCK, RWLOCK_TIMEDRDLOCK_IN, rwlock_timedrdlock_in, rwlock, site,
			  .deadline_ns = ptt_ns(deadline));
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_TIMEDRDLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_TIMEDRDLOCK_OUT, rwlock_timedrdlock_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock, const struct timespec *deadline)
{
	struct request r = {
		.write = true, .clock = TIMED, .deadline = deadline, .routine = NPTL_EV_RWLOCK_TIMEDWRLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK))
		return ptt_real.pthread_rwlock_timedwrlock(rwlock, deadline);
	if (must_trace(RWLOCK, RWLOCK_TIMEDWRLOCK_IN))
		EMIT_WITH(RWLOCK, RWLOCK_TIMEDWRLOCK_IN, rwlock_timedwrlock_in, rwlock, site,
			  .deadline_ns = ptt_ns(deadline));
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_TIMEDWRLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_TIMEDWRLOCK_OUT, rwlock_timedwrlock_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *deadline)
{
	struct request r = {.clock = clock, .deadline = deadline, .routine = NPTL_EV_RWLOCK_CLOCKRDLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK) || !ptt_clock_valid(clock))
		return ptt_real.pthread_rwlock_clockrdlock(rwlock, clock, deadline);
	if (must_trace(RWLOCK, RWLOCK_CLOCKRDLOCK_IN))
		EMIT_WITH(RWLOCK, RWLOCK_CLOCKRDLOCK_IN, rwlock_clockrdlock_in, rwlock, site, .clock = (uint16_t)clock,
			  .deadline_ns = ptt_ns(deadline));
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_CLOCKRDLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_CLOCKRDLOCK_OUT, rwlock_clockrdlock_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *deadline)
{
	struct request r = {
		.write = true, .clock = clock, .deadline = deadline, .routine = NPTL_EV_RWLOCK_CLOCKWRLOCK_IN};
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_RWLOCK) || !ptt_clock_valid(clock))
		return ptt_real.pthread_rwlock_clockwrlock(rwlock, clock, deadline);
	if (must_trace(RWLOCK, RWLOCK_CLOCKWRLOCK_IN))
		EMIT_WITH(RWLOCK, RWLOCK_CLOCKWRLOCK_IN, rwlock_clockwrlock_in, rwlock, site, .clock = (uint16_t)clock,
			  .deadline_ns = ptt_ns(deadline));
	result = take(rwlock, &r, site);
	if (must_trace(RWLOCK, RWLOCK_CLOCKWRLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_CLOCKWRLOCK_OUT, rwlock_clockwrlock_out, rwlock, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ unlock */

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	void *site = CALL_SITE;
	int result;

	if (ptt_level(NPTL_DOMAIN_RWLOCK) < NPTL_LEVEL_RWLOCK_FREE)
		return ptt_real.pthread_rwlock_unlock(rwlock);
	if (must_trace(RWLOCK, RWLOCK_UNLOCK_IN))
		EMIT(RWLOCK, RWLOCK_UNLOCK_IN, rwlock, site);
	/* stamped before the release, so that the next holder's time is later */
	EMIT(RWLOCK, RWLOCK_FREE, rwlock, site);
	result = ptt_real.pthread_rwlock_unlock(rwlock);
	if (result)
		report_error(rwlock, NPTL_EV_RWLOCK_UNLOCK_IN, result, site);
	if (must_trace(RWLOCK, RWLOCK_UNLOCK_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_UNLOCK_OUT, rwlock_unlock_out, rwlock, site, .result = result);
	return result;
}

/* ------------------------------------------------------------ init, destroy */

static void report_init(pthread_rwlock_t *rwlock, const pthread_rwlockattr_t *attr, void *site)
{
	int preference = PTHREAD_RWLOCK_DEFAULT_NP, shared = 0;

	if (attr) {
		pthread_rwlockattr_getkind_np(attr, &preference);
		pthread_rwlockattr_getpshared(attr, &shared);
	}
	EMIT_WITH(RWLOCK, RWLOCK_INIT, rwlock_init, rwlock, site, .preference = (uint16_t)preference,
		  .shared = (uint16_t)shared);
}

EXPORT int pthread_rwlock_init(pthread_rwlock_t *rwlock, const pthread_rwlockattr_t *attr)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(RWLOCK, RWLOCK_INIT_IN))
		EMIT_WITH(RWLOCK, RWLOCK_INIT_IN, rwlock_init_in, rwlock, site, .attr = (uintptr_t)attr);
	result = ptt_real.pthread_rwlock_init(rwlock, attr);
	if (result)
		report_error(rwlock, NPTL_EV_RWLOCK_INIT_IN, result, site);
	else if (must_trace(RWLOCK, RWLOCK_INIT))
		report_init(rwlock, attr, site);
	if (must_trace(RWLOCK, RWLOCK_INIT_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_INIT_OUT, rwlock_init_out, rwlock, site, .result = result);
	return result;
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *rwlock)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(RWLOCK, RWLOCK_DESTROY_IN))
		EMIT(RWLOCK, RWLOCK_DESTROY_IN, rwlock, site);
	result = ptt_real.pthread_rwlock_destroy(rwlock);
	if (result)
		report_error(rwlock, NPTL_EV_RWLOCK_DESTROY_IN, result, site);
	else if (must_trace(RWLOCK, RWLOCK_DESTROY))
		EMIT(RWLOCK, RWLOCK_DESTROY, rwlock, site);
	if (must_trace(RWLOCK, RWLOCK_DESTROY_OUT))
		EMIT_WITH(RWLOCK, RWLOCK_DESTROY_OUT, rwlock_destroy_out, rwlock, site, .result = result);
	return result;
}
