/* SPDX-License-Identifier: MIT */
/* contended.c - keeps the table of locks that are waited for. */
#include "contended.h"

#include <pthread.h>

#include "../platform/clock.h"
#include "../platform/other_lock.h"
#include "taker.h"
#include "writer.h"

#define WAITER (UINT64_C(1) << 48)
#define WAITERS(entry) ((entry) >> 48 & 0xff)
#define WAITERS_MAX 0xffu
#define CALM (UINT64_C(1) << 56)
#define CALM_MAX 64u
#define CALM_OF(entry) ((entry) >> 56 & 0x7f)
#define OWED (UINT64_C(1) << 63)

/*
 * A stack that is found with the lock in hand makes others wait longer. So a thread has one of the acquisitions of a lock at a place
 * recorded, then none until this time has passed, of the order of a millisecond. Those that block others for longer have theirs: the one
 * before ended that long ago.
 */
#define TICKS_SHIFT 12
#define INTERVAL 512u /* of 2^12 ticks: of a processor's counter or nanoseconds */
#define PLACES_BITS 4

/* In glibc's word for a mutex's type, protocol and robustness: waiters of all but these make the lock word 2 and sleep. */
#define MUTEX_SPINS 3
#define MUTEX_TYPE 3
#define MUTEX_OTHER_WORD 0x70 /* robust, with priority inheritance, with a ceiling */

uint64_t ptt_contended_table[1u << PTT_CONTENDED_BITS];

/* Relaxed throughout: an entry is all there is, and only says what is worth a stack. */
static bool change(uint64_t *entry, uint64_t *from, uint64_t to)
{
	return __atomic_compare_exchange_n(entry, from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void ptt_contended_wait(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED), next;

	do {
		bool same = (now & PTT_OBJECT_MASK) == object;

		if ((!same && WAITERS(now)) || WAITERS(now) == WAITERS_MAX)
			return;
		next = object | (same ? WAITERS(now) + 1 : 1) * WAITER | CALM_MAX * CALM | OWED;
	} while (!change(entry, &now, next));
	/* its holder is to look here when it releases */
	ptt_taker_doubt(object);
}

void ptt_contended_waited(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED);

	while ((now & PTT_OBJECT_MASK) == object && WAITERS(now) && !change(entry, &now, now - WAITER))
		;
	/* others may wait for what it has now */
	if ((now & PTT_OBJECT_MASK) == object)
		ptt_taker_doubt(object);
}

/* Has the calling thread had no stack of an acquisition of @object at @site for a while? Then it has one now. */
static bool is_due(uint64_t object, uint64_t site)
{
	static __thread uint32_t last[1u << PLACES_BITS] __attribute__((tls_model("initial-exec")));
	uint32_t now = (uint32_t)(ptt_clock(ptt_ring.clock) >> TICKS_SHIFT);
	uint32_t *then = &last[(object ^ site) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PLACES_BITS)];

	if (now - *then < INTERVAL)
		return false;
	*then = now;
	return true;
}

bool ptt_contended_take(uint64_t object, uint64_t site)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED);
	bool wanted;

	if ((now & PTT_OBJECT_MASK) != object || !CALM_OF(now))
		return false;
	wanted = is_due(object, site);
	if (wanted && !WAITERS(now))
		change(entry, &now, now - CALM); /* or somebody else did, and the next one does */
	/* nor is the next acquisition, or the release that somebody waits for, to go by the short way */
	if (wanted || (WAITERS(now) && now & OWED))
		ptt_taker_doubt(object);
	return wanted;
}

bool ptt_contended_release(uint64_t object)
{
	uint64_t entry = __atomic_load_n(ptt_contended_entry(object), __ATOMIC_RELAXED);

	return (entry & PTT_OBJECT_MASK) == object && WAITERS(entry);
}

/* Does a thread sleep until the mutex is released, which the calling thread holds? */
static bool has_sleeper(uint64_t object)
{
	const pthread_mutex_t *mutex = (const pthread_mutex_t *)(uintptr_t)object;
	int kind;

	if (ptt_other_lock_at(object) != PTT_OTHER_NONE)
		return true;
	/* relaxed: the kind does not change, and the holder's release is what a waiter's write of the word is ordered with */
	kind = __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
	if ((kind & MUTEX_OTHER_WORD) || (kind & MUTEX_TYPE) == MUTEX_SPINS)
		return true;
	return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1;
}

bool ptt_contended_wakes(uint64_t object)
{
	uint64_t *entry = ptt_contended_entry(object), now = __atomic_load_n(entry, __ATOMIC_RELAXED);

	if (!ptt_contended_release(object) || !has_sleeper(object))
		return false;
	while ((now & PTT_OBJECT_MASK) == object && now & OWED && !change(entry, &now, now & ~OWED))
		;
	return true;
}
