/* SPDX-License-Identifier: MIT */
/* spin.c - pthread_spin_lock(): reports that a spin lock is taken, and how long the thread spun. */
#include "tracer.h"

/* Another thread has the lock: report the wait, then spin. */
static COLD int lock_contended(pthread_spinlock_t *lock, void *site)
{
	uint64_t began;
	int result;

	EMIT(SPIN, SPIN_WAIT, lock, site);
	began = ptt_now_ns();
	result = ptt_real.pthread_spin_lock(lock);
	REPORT_WITH(SPIN, SPIN_TAKEN_WAITED, spin_taken_waited, lock, site, .result = result,
		    .wait_ns = ptt_now_ns() - began);
	return result;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_SPIN))
		return ptt_real.pthread_spin_lock(lock);
	REPORT(SPIN, SPIN_LOCK_IN, lock, site);
	result = ptt_real.pthread_spin_trylock(lock);
	if (unlikely(result))
		result = lock_contended(lock, site);
	else
		REPORT(SPIN, SPIN_TAKEN, lock, site);
	REPORT_RESULT(SPIN, SPIN_LOCK_OUT, lock, result, site);
	return result;
}
