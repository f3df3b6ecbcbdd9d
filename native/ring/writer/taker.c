/* SPDX-License-Identifier: MIT */
/* taker.c - changes the table of the last takers of objects. */
#include "taker.h"

#include <pthread.h>

#include "../platform/upcalls.h"
#include "session.h"

/* In glibc's word for a mutex's type, protocol and robustness: several processes may share the mutex. */
#define MUTEX_SHARED 0x80

uint64_t ptt_ring_taker[PTT_TAKER_COUNT];

/*
 * May threads of other processes use the object? This process sees no events of theirs. A thread holds the object, so its
 * memory is valid. A lock of another library may be a single byte, so it is not read.
 */
static bool is_shared(enum ptt_taking taking, uint64_t object)
{
	const void *at = (const void *)(uintptr_t)object;
	enum ptt_other_lock other = ptt_upcalls.other_lock(object);

	if (other != PTT_OTHER_NONE)
		return other == PTT_OTHER_UNKNOWN;
	/* relaxed: the attributes of a lock never change */
	if (taking == PTT_TAKING_MUTEX)
		return __atomic_load_n(&((const pthread_mutex_t *)at)->__data.__kind, __ATOMIC_RELAXED) & MUTEX_SHARED;
	return __atomic_load_n(&((const pthread_rwlock_t *)at)->__data.__shared, __ATOMIC_RELAXED) != 0;
}

bool ptt_taker_change(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
{
	uint64_t *entry = &ptt_ring_taker[PTT_TAKER_HASH(object)];
	uint64_t mine = object | (uint64_t)(uintptr_t)self << 41, unused = 0;
	bool acquired = taking <= PTT_TAKING_READ;

	if (taking != PTT_TAKING_INIT && ptt_taker_is_known(object, self))
		return false;
	/* relaxed throughout: as at the read */
	if (taking == PTT_TAKING_INIT && (__atomic_load_n(entry, __ATOMIC_RELAXED) & PTT_OBJECT_MASK) != object)
		return false; /* the entry is about another object and stays true */
	/* may the entry name @self as the only thread that uses @object? */
	if (!acquired || ptt_ring_is_nowhere(self) || is_shared(taking, object))
		__atomic_store_n(entry, PTT_TAKER_UNSURE, __ATOMIC_RELAXED);
	else if (taking != PTT_TAKING_READ)
		__atomic_store_n(entry, mine, __ATOMIC_RELAXED);
	else if (!__atomic_compare_exchange_n(entry, &unused, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(entry, PTT_TAKER_UNSURE, __ATOMIC_RELAXED);
	return acquired;
}

void ptt_taker_doubt(uint64_t object)
{
	/* relaxed: as at the read */
	__atomic_store_n(&ptt_ring_taker[PTT_TAKER_HASH(object)], PTT_TAKER_UNSURE, __ATOMIC_RELAXED);
}
