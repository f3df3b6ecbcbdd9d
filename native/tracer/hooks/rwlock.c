/* SPDX-License-Identifier: MIT */
/* rwlock.c - hooks that take a read-write lock: report waits, and the writer or the readers during a wait. */
#include "bodies.h"

static inline void report_taken(pthread_rwlock_t *rwlock, bool write, void *site)
{
	if (write)
		REPORT(RWLOCK, RWLOCK_TAKEN_WRITE, rwlock, site);
	else
		REPORT(RWLOCK, RWLOCK_TAKEN_READ, rwlock, site);
}

/* Taken by a timed routine, which does not wait for ever. */
static void report_tried(pthread_rwlock_t *rwlock, bool write, void *site)
{
	if (write)
		REPORT(RWLOCK, RWLOCK_TAKEN_WRITE_TRIED, rwlock, site);
	else
		REPORT(RWLOCK, RWLOCK_TAKEN_READ_TRIED, rwlock, site);
}

static void report_wait_end(pthread_rwlock_t *rwlock, bool write, int result, uint64_t began, void *site)
{
	uint64_t waited = ptt_now_ns() - began;

	if (result)
		REPORT_WITH(RWLOCK, RWLOCK_WAIT_END, rwlock_wait_end, rwlock, site, .result = result, .wait_ns = waited);
	else if (write)
		REPORT_WITH(RWLOCK, RWLOCK_TAKEN_WRITE_WAITED, rwlock_taken_write_waited, rwlock, site, .wait_ns = waited);
	else
		REPORT_WITH(RWLOCK, RWLOCK_TAKEN_READ_WAITED, rwlock_taken_read_waited, rwlock, site, .wait_ns = waited);
}

static int lock_real(pthread_rwlock_t *rwlock, bool write, const struct ptt_request *r)
{
	switch (r->clock) {
	case UNTIMED:
		return write ? ptt_real.pthread_rwlock_wrlock(rwlock) : ptt_real.pthread_rwlock_rdlock(rwlock);
	case TIMED:
		return write ? ptt_real.pthread_rwlock_timedwrlock(rwlock, r->deadline)
			     : ptt_real.pthread_rwlock_timedrdlock(rwlock, r->deadline);
	default:
		return write ? ptt_real.pthread_rwlock_clockwrlock(rwlock, r->clock, r->deadline)
			     : ptt_real.pthread_rwlock_clockrdlock(rwlock, r->clock, r->deadline);
	}
}

/* Writer and number of readers come from glibc's lock. */
static void report_wait(pthread_rwlock_t *rwlock, bool write, const struct ptt_request *r, void *site)
{
	EMIT_WITH(RWLOCK, RWLOCK_WAIT, rwlock_wait, rwlock, site, .write = write, .timed = ptt_request_is_timed(r),
		  .owner = (uint32_t)__atomic_load_n(&rwlock->__data.__cur_writer, __ATOMIC_RELAXED),
		  .readers = __atomic_load_n(&rwlock->__data.__readers, __ATOMIC_RELAXED) >> 3);
}

static COLD int take_contended(pthread_rwlock_t *rwlock, bool write, const struct ptt_request *r, int result, void *site)
{
	uint64_t began;

	if (result == EBUSY && ptt_in_lock) {
		result = lock_real(rwlock, write, r);
		if (!result)
			report_taken(rwlock, write, site);
	} else if (result == EBUSY) {
		report_wait(rwlock, write, r, site);
		began = ptt_now_ns();
		result = lock_real(rwlock, write, r);
		report_wait_end(rwlock, write, result, began, site);
	}
	if (result && result != ETIMEDOUT)
		REPORT_ERROR(RWLOCK, rwlock, r->routine, result, site);
	return result;
}

/* The real function refuses a bad deadline, in any state of the lock. */
static COLD int refuse(pthread_rwlock_t *rwlock, bool write, const struct ptt_request *r, void *site)
{
	int result = lock_real(rwlock, write, r);

	if (result)
		REPORT_ERROR(RWLOCK, rwlock, r->routine, result, site);
	return result;
}

static inline int take(pthread_rwlock_t *rwlock, bool write, const struct ptt_request *r, void *site)
{
	int result;

	if (unlikely(!ptt_request_is_valid(r)))
		return refuse(rwlock, write, r, site);
	if (must_trace(RWLOCK, RWLOCK_TAKEN_READ))
		ptt_before_lock(rwlock, site);
	result = write ? ptt_real.pthread_rwlock_trywrlock(rwlock) : ptt_real.pthread_rwlock_tryrdlock(rwlock);
	if (unlikely(result))
		return take_contended(rwlock, write, r, result, site);
	if (unlikely(ptt_request_is_timed(r)))
		report_tried(rwlock, write, site);
	else
		report_taken(rwlock, write, site);
	return 0;
}

int ptt_rwlock_read(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site)
{
	return take(rwlock, false, r, site);
}

int ptt_rwlock_write(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site)
{
	return take(rwlock, true, r, site);
}
