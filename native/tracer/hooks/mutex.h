/* SPDX-License-Identifier: MIT */
/* mutex.h - what glibc keeps in a mutex that a tracer may want to know. Reads only: safe anywhere. */
#ifndef PTT_MUTEX_H
#define PTT_MUTEX_H

#include <linux/futex.h>

#include "tracer.h"

/* How a hook finds out whether an ordinary mutex is free: pthread_mutex_trylock(), or what resolve.c has instead. */
extern int (*ptt_try_lock)(pthread_mutex_t *mutex) HIDDEN;

/* ptt_lock_if_free - what resolve.c has instead: no other routine is called than pthread_mutex_lock() */
int ptt_lock_if_free(pthread_mutex_t *mutex) HIDDEN;

/* Bits of the kind, and of the word of a mutex with a ceiling: the rest of the word is the ceiling. */
#define PTT_MUTEX_TYPE 0x3u
#define PTT_MUTEX_CHECKS 0x3fu /* the bits that say which checks are made */
#define PTT_MUTEX_ROBUST 0x10u
#define PTT_MUTEX_CEILING 0x40u
#define PTT_MUTEX_CEILING_LOCKED 0x7ffffu

/* The holder, as glibc keeps it in every mutex it has locked; 0 where it is free or does not know. */
static inline uint32_t ptt_mutex_owner(const pthread_mutex_t *mutex)
{
	return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

/* Type, robustness and protocol in one word. */
static inline uint32_t ptt_mutex_kind(const pthread_mutex_t *mutex)
{
	return (uint32_t)__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
}

/* Any thread can unlock a plain or adaptive mutex that neither is robust nor inherits priority, also a mutex with a ceiling. */
static inline bool ptt_mutex_checks_owner(const pthread_mutex_t *mutex)
{
	uint32_t kind = ptt_mutex_kind(mutex) & PTT_MUTEX_CHECKS;

	return kind != PTHREAD_MUTEX_TIMED_NP && kind != PTHREAD_MUTEX_ADAPTIVE_NP;
}

/* A robust mutex that was taken over from a dead thread, and not made consistent, has this owner; its word has the real one. */
#define PTT_MUTEX_INCONSISTENT INT32_MAX

static inline bool ptt_mutex_is_own(const pthread_mutex_t *mutex)
{
	uint32_t owner = ptt_mutex_owner(mutex);

	if (unlikely(owner == PTT_MUTEX_INCONSISTENT))
		owner = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
	return owner == ptt_tid();
}

/* ptt_mutex_can_be_freed - will a release by the calling thread be accepted? */
static inline bool ptt_mutex_can_be_freed(const pthread_mutex_t *mutex)
{
	return !ptt_mutex_checks_owner(mutex) || ptt_mutex_is_own(mutex);
}

/* ptt_mutex_is_busy - would pthread_mutex_lock() block, as things are? A guess, for which nothing is read but the mutex. */
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

#endif
