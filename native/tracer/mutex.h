/* SPDX-License-Identifier: MIT */
/* mutex.h - what glibc keeps in a mutex that a tracer may want to know. Reads only: safe anywhere. */
#ifndef PTT_MUTEX_H
#define PTT_MUTEX_H

#include <linux/futex.h>

#include "tracer.h"

/* How pthread_mutex_lock() finds out whether it has to wait: pthread_mutex_trylock(), or what resolve.c has instead. */
extern int (*ptt_try_lock)(pthread_mutex_t *mutex) HIDDEN;

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

/* A plain or adaptive mutex that neither is robust nor inherits priority is unlocked by whoever asks, also with a ceiling. */
static inline bool ptt_mutex_checks_owner(const pthread_mutex_t *mutex)
{
	uint32_t kind = ptt_mutex_kind(mutex) & 0x3f;

	return kind != PTHREAD_MUTEX_TIMED_NP && kind != PTHREAD_MUTEX_ADAPTIVE_NP;
}

/* A robust mutex that was taken over from a dead thread, and not made consistent, has this owner; its word has the real one. */
#define PTT_MUTEX_INCONSISTENT INT32_MAX

/* ptt_mutex_can_be_freed - will a release by the calling thread be accepted? */
static inline bool ptt_mutex_can_be_freed(const pthread_mutex_t *mutex)
{
	uint32_t owner;

	if (!ptt_mutex_checks_owner(mutex))
		return true;
	owner = ptt_mutex_owner(mutex);
	if (unlikely(owner == PTT_MUTEX_INCONSISTENT))
		owner = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & FUTEX_TID_MASK;
	return owner == ptt_tid();
}

#endif
