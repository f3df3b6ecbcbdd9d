/* SPDX-License-Identifier: MIT */
/* mutex.h - the owner and the kind in glibc's mutexes. The functions only read: they are safe anywhere. */
#ifndef PTT_MUTEX_H
#define PTT_MUTEX_H

#include <linux/futex.h>

#include "tracer.h"

/* How a hook tries an ordinary mutex: pthread_mutex_trylock(), or ptt_lock_if_free(). */
extern int (*ptt_try_lock)(pthread_mutex_t *mutex) HIDDEN;

/*
 * ptt_lock_if_free - resolve.c: as pthread_mutex_trylock(), but calls only pthread_mutex_lock(). May block if another
 * thread is faster.
 */
int ptt_lock_if_free(pthread_mutex_t *mutex) HIDDEN;

/* Bits of the kind; and of the lock word of a mutex with a ceiling, where the other bits are the ceiling. */
#define PTT_MUTEX_TYPE 0x3u
#define PTT_MUTEX_CHECKS 0x3fu /* type, robustness and priority inheritance */
#define PTT_MUTEX_ROBUST 0x10u
#define PTT_MUTEX_INHERITS 0x20u
#define PTT_MUTEX_CEILING 0x40u
#define PTT_MUTEX_CEILING_LOCKED 0x7ffffu

/* ptt_mutex_owner - kernel id of the holder, as glibc keeps it; 0: the mutex is free, or glibc does not know. */
static inline uint32_t ptt_mutex_owner(const pthread_mutex_t *mutex)
{
	return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

/* ptt_mutex_kind - type, robustness and protocol in one word. */
static inline uint32_t ptt_mutex_kind(const pthread_mutex_t *mutex)
{
	return (uint32_t)__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
}

/*
 * ptt_mutex_checks_owner - does unlock check the owner? Not for plain and adaptive mutexes without robustness and
 * inheritance.
 */
static inline bool ptt_mutex_checks_owner(const pthread_mutex_t *mutex)
{
	uint32_t kind = ptt_mutex_kind(mutex) & PTT_MUTEX_CHECKS;

	return kind != PTHREAD_MUTEX_TIMED_NP && kind != PTHREAD_MUTEX_ADAPTIVE_NP;
}

/* The owner field of a robust mutex after EOWNERDEAD, until it is made consistent. The lock word has the real owner. */
#define PTT_MUTEX_INCONSISTENT INT32_MAX

static inline bool ptt_mutex_is_own(const pthread_mutex_t *mutex)
{
	uint32_t owner = ptt_mutex_owner(mutex);

	if (unlikely(owner == PTT_MUTEX_INCONSISTENT))
		owner = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
	return owner == ptt_tid();
}

/* ptt_mutex_can_be_freed - would unlock by the calling thread succeed? */
static inline bool ptt_mutex_can_be_freed(const pthread_mutex_t *mutex)
{
	return !ptt_mutex_checks_owner(mutex) || ptt_mutex_is_own(mutex);
}

/* ptt_mutex_is_busy - would pthread_mutex_lock() block now? A guess: other threads may change the mutex meanwhile. */
static inline bool ptt_mutex_is_busy(const pthread_mutex_t *mutex)
{
	uint32_t word = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
	uint32_t kind = ptt_mutex_kind(mutex), type = kind & PTT_MUTEX_TYPE;

	if (kind & PTT_MUTEX_CEILING)
		word &= PTT_MUTEX_CEILING_LOCKED;
	else if ((kind & PTT_MUTEX_ROBUST) && (word & FUTEX_OWNER_DIED))
		return false;
	if (!word)
		return false;
	return !((type == PTHREAD_MUTEX_RECURSIVE_NP || type == PTHREAD_MUTEX_ERRORCHECK_NP) && ptt_mutex_is_own(mutex));
}

/* ptt_mutex_is_awaited - would an unlock by the calling thread free the mutex, and wake a thread that sleeps? */
static inline bool ptt_mutex_is_awaited(const pthread_mutex_t *mutex)
{
	uint32_t word = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
	uint32_t kind;

	/* held, and no thread sleeps: with robustness, inheritance and a ceiling, the word has other bits as well */
	if (likely(word <= 1))
		return false;
	kind = ptt_mutex_kind(mutex);
	if ((kind & PTT_MUTEX_TYPE) == PTHREAD_MUTEX_RECURSIVE_NP && mutex->__data.__count != 1)
		return false;
	if (kind & PTT_MUTEX_CEILING)
		word &= PTT_MUTEX_CEILING_LOCKED;
	else if (kind & (PTT_MUTEX_ROBUST | PTT_MUTEX_INHERITS))
		word = word & FUTEX_WAITERS ? 2 : 1;
	return word > 1 && ptt_mutex_can_be_freed(mutex);
}

/*
 * ptt_mutex_report_awaited - at the level that reports only waits: the calling thread is about to free the mutex. If threads
 * sleep, the stack of the release tells them where their owner held the mutex.
 */
static inline void ptt_mutex_report_awaited(const pthread_mutex_t *mutex, void *site)
{
	if (unlikely(ptt_mutex_is_awaited(mutex)))
		REPORT(MUTEX, MUTEX_FREE_AWAITED, mutex, site);
}

#endif
