/* SPDX-License-Identifier: MIT */
/* spin.c - pthread_spin_*: taken, free, and how long a thread span. */
#include "tracer.h"

/* Held by another thread: say so, then spin. */
static COLD int lock_contended(pthread_spinlock_t *lock, void *site)
{
	uint64_t began;
	int result;

	EMIT(SPIN, SPIN_WAIT, (void *)lock, site);
	began = ptt_now_ns();
	result = ptt_real.pthread_spin_lock(lock);
	if (must_trace(SPIN, SPIN_TAKEN_WAITED))
		EMIT_WITH(SPIN, SPIN_TAKEN_WAITED, spin_taken_waited, lock, site, .result = result,
			  .wait_ns = ptt_now_ns() - began);
	return result;
}

static inline int lock_spin(pthread_spinlock_t *lock, void *site)
{
	if (unlikely(ptt_real.pthread_spin_trylock(lock)))
		return lock_contended(lock, site);
	if (must_trace(SPIN, SPIN_TAKEN))
		EMIT(SPIN, SPIN_TAKEN, (void *)lock, site);
	return 0;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	void *site = CALL_SITE;
	int result;

	if (!ptt_level(NPTL_DOMAIN_SPIN))
		return ptt_real.pthread_spin_lock(lock);
	if (must_trace(SPIN, SPIN_LOCK_IN))
		EMIT(SPIN, SPIN_LOCK_IN, (void *)lock, site);
	result = lock_spin(lock, site);
	if (must_trace(SPIN, SPIN_LOCK_OUT))
		EMIT_WITH(SPIN, SPIN_LOCK_OUT, spin_lock_out, lock, site, .result = result);
	return result;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(SPIN, SPIN_TRYLOCK_IN))
		EMIT(SPIN, SPIN_TRYLOCK_IN, (void *)lock, site);
	result = ptt_real.pthread_spin_trylock(lock);
	if (result == 0 && must_trace(SPIN, SPIN_TAKEN_TRIED))
		EMIT(SPIN, SPIN_TAKEN_TRIED, (void *)lock, site);
	if (must_trace(SPIN, SPIN_TRYLOCK_OUT))
		EMIT_WITH(SPIN, SPIN_TRYLOCK_OUT, spin_trylock_out, lock, site, .result = result);
	return result;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	void *site = CALL_SITE;
	int result;

	if (ptt_level(NPTL_DOMAIN_SPIN) < NPTL_LEVEL_SPIN_FREE)
		return ptt_real.pthread_spin_unlock(lock);
	if (must_trace(SPIN, SPIN_UNLOCK_IN))
		EMIT(SPIN, SPIN_UNLOCK_IN, (void *)lock, site);
	/* stamped before the release, so that the next holder's time is later */
	EMIT(SPIN, SPIN_FREE, (void *)lock, site);
	result = ptt_real.pthread_spin_unlock(lock);
	if (must_trace(SPIN, SPIN_UNLOCK_OUT))
		EMIT_WITH(SPIN, SPIN_UNLOCK_OUT, spin_unlock_out, lock, site, .result = result);
	return result;
}

EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(SPIN, SPIN_INIT_IN))
		EMIT_WITH(SPIN, SPIN_INIT_IN, spin_init_in, lock, site, .shared = (uint16_t)shared);
	result = ptt_real.pthread_spin_init(lock, shared);
	if (result == 0 && must_trace(SPIN, SPIN_INIT))
		EMIT_WITH(SPIN, SPIN_INIT, spin_init, lock, site, .shared = (uint16_t)shared);
	if (must_trace(SPIN, SPIN_INIT_OUT))
		EMIT_WITH(SPIN, SPIN_INIT_OUT, spin_init_out, lock, site, .result = result);
	return result;
}

EXPORT int pthread_spin_destroy(pthread_spinlock_t *lock)
{
	void *site = CALL_SITE;
	int result;

	if (must_trace(SPIN, SPIN_DESTROY_IN))
		EMIT(SPIN, SPIN_DESTROY_IN, (void *)lock, site);
	result = ptt_real.pthread_spin_destroy(lock);
	if (result == 0 && must_trace(SPIN, SPIN_DESTROY))
		EMIT(SPIN, SPIN_DESTROY, (void *)lock, site);
	if (must_trace(SPIN, SPIN_DESTROY_OUT))
		EMIT_WITH(SPIN, SPIN_DESTROY_OUT, spin_destroy_out, lock, site, .result = result);
	return result;
}
