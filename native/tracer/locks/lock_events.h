/* SPDX-License-Identifier: MIT */
/* lock_events.h - reports of locks of other libraries, as events of a mutex or of a read-write lock. */
/*
 * As for all events, no function here blocks or allocates. @shared: a read-write lock is taken for reading; false for
 * a mutex.
 */
#ifndef PTT_LOCK_EVENTS_H
#define PTT_LOCK_EVENTS_H

#include <errno.h>

#include "lock_function.h"
#include "tracer.h"

/* A lock in a call of a function. */
struct ptt_lock_used {
	const struct ptt_lock_function *function;
	const void *object;
	void *site;
	bool shared;
};

static inline bool ptt_lock_is_rwlock(const struct ptt_lock_used *lock)
{
	return lock->function->domain == NPTL_DOMAIN_RWLOCK;
}

static inline void ptt_report_lock_taken(const struct ptt_lock_used *lock)
{
	if (!ptt_lock_is_rwlock(lock))
		REPORT(MUTEX, MUTEX_TAKEN, lock->object, lock->site);
	else if (lock->shared)
		REPORT(RWLOCK, RWLOCK_TAKEN_READ, lock->object, lock->site);
	else
		REPORT(RWLOCK, RWLOCK_TAKEN_WRITE, lock->object, lock->site);
}

static inline void ptt_report_lock_tried(const struct ptt_lock_used *lock)
{
	if (!ptt_lock_is_rwlock(lock))
		REPORT(MUTEX, MUTEX_TAKEN_TRIED, lock->object, lock->site);
	else if (lock->shared)
		REPORT(RWLOCK, RWLOCK_TAKEN_READ_TRIED, lock->object, lock->site);
	else
		REPORT(RWLOCK, RWLOCK_TAKEN_WRITE_TRIED, lock->object, lock->site);
}

static inline void ptt_report_lock_free(const struct ptt_lock_used *lock)
{
	if (ptt_lock_is_rwlock(lock))
		REPORT(RWLOCK, RWLOCK_FREE, lock->object, lock->site);
	else
		REPORT(MUTEX, MUTEX_FREE, lock->object, lock->site);
}

/* Owner 0: the tracer does not know the holder. */
static inline void ptt_report_lock_wait(const struct ptt_lock_used *lock)
{
	if (ptt_lock_is_rwlock(lock))
		REPORT_WITH(RWLOCK, RWLOCK_WAIT, rwlock_wait, lock->object, lock->site, .write = !lock->shared);
	else
		REPORT_WITH(MUTEX, MUTEX_WAIT, mutex_wait, lock->object, lock->site, .owner = 0);
}

/* ptt_report_lock_wait_end - a wait of @ns is over. @result: 0 if the thread has the lock, else an error number */
static inline void ptt_report_lock_wait_end(const struct ptt_lock_used *lock, int result, uint64_t ns)
{
	const void *object = lock->object;
	void *site = lock->site;

	if (!ptt_lock_is_rwlock(lock) && result)
		REPORT_WITH(MUTEX, MUTEX_WAIT_END, mutex_wait_end, object, site, .result = result, .wait_ns = ns);
	else if (!ptt_lock_is_rwlock(lock))
		REPORT_WITH(MUTEX, MUTEX_TAKEN_WAITED, mutex_taken_waited, object, site, .wait_ns = ns);
	else if (result)
		REPORT_WITH(RWLOCK, RWLOCK_WAIT_END, rwlock_wait_end, object, site, .result = result, .wait_ns = ns);
	else if (lock->shared)
		REPORT_WITH(RWLOCK, RWLOCK_TAKEN_READ_WAITED, rwlock_taken_read_waited, object, site, .wait_ns = ns);
	else
		REPORT_WITH(RWLOCK, RWLOCK_TAKEN_WRITE_WAITED, rwlock_taken_write_waited, object, site, .wait_ns = ns);
}

/* The two functions below also take conditions. */

static inline void ptt_report_lock_init(const struct ptt_lock_used *lock)
{
	if (lock->function->domain == NPTL_DOMAIN_COND)
		REPORT_WITH(COND, COND_INIT, cond_init, lock->object, lock->site, .clock = 0);
	else if (ptt_lock_is_rwlock(lock))
		REPORT_WITH(RWLOCK, RWLOCK_INIT, rwlock_init, lock->object, lock->site, .preference = 0);
	else
		REPORT_WITH(MUTEX, MUTEX_INIT, mutex_init, lock->object, lock->site, .kind = 0);
}

static inline void ptt_report_lock_destroy(const struct ptt_lock_used *lock)
{
	if (lock->function->domain == NPTL_DOMAIN_COND)
		REPORT(COND, COND_DESTROY, lock->object, lock->site);
	else if (ptt_lock_is_rwlock(lock))
		REPORT(RWLOCK, RWLOCK_DESTROY, lock->object, lock->site);
	else
		REPORT(MUTEX, MUTEX_DESTROY, lock->object, lock->site);
}

/* Takes conditions and barriers, too. */
static inline void ptt_report_lock_type(const struct ptt_lock_used *lock)
{
	uint16_t type = lock->function->type;

	if (lock->function->domain == NPTL_DOMAIN_COND)
		REPORT_WITH(COND, COND_TYPE, mutex_type, lock->object, lock->site, .type = type);
	else if (lock->function->domain == NPTL_DOMAIN_BARRIER)
		REPORT_WITH(BARRIER, BARRIER_TYPE, mutex_type, lock->object, lock->site, .type = type);
	else if (ptt_lock_is_rwlock(lock))
		REPORT_WITH(RWLOCK, RWLOCK_TYPE, mutex_type, lock->object, lock->site, .type = type);
	else
		REPORT_WITH(MUTEX, MUTEX_TYPE, mutex_type, lock->object, lock->site, .type = type);
}

#endif
