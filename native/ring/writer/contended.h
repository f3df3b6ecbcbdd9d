/* SPDX-License-Identifier: MIT */
/* contended.h - which locks threads have waited for lately, and whether one waits now: only of these holders' stacks count. */
/*
 * A table by a hash of the address. An entry is used while threads wait, and for some acquisitions more, each of which finds
 * that nobody had to wait; then the lock is as others are again. Where two contended locks have the same hash, the one that
 * came first is kept as long as it is waited for.
 */
#ifndef PTT_CONTENDED_H
#define PTT_CONTENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "../layout/ptt_abi.h"

#define PTT_CONTENDED_BITS 12

/*
 * object:48 waiters:8 calm:7 owed:1 - how many stacks of acquisitions without a wait are still recorded; no release since the last
 * wait began has had its own
 */
#define PTT_CONTENDED_NOW (UINT64_C(0x7fff) << 48) /* waiters and calm: those of a lock that is as others again are none */

extern uint64_t ptt_contended_table[1u << PTT_CONTENDED_BITS] __attribute__((visibility("hidden")));

/* A bit of each entry: has it ever been used? A few lines of cache, where the table would take all of the nearest one. */
extern uint64_t ptt_contended_ever[(1u << PTT_CONTENDED_BITS) / 64] __attribute__((visibility("hidden")));

static inline uint32_t ptt_contended_place(uint64_t object)
{
	return (uint32_t)(object * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PTT_CONTENDED_BITS));
}

static inline uint64_t *ptt_contended_entry(uint64_t object)
{
	return &ptt_contended_table[ptt_contended_place(object)];
}

/* ptt_contended_knows - can ptt_contended_is_due() or ptt_contended_release() of @object say yes? For the way without a call. */
static inline bool ptt_contended_knows(uint64_t object)
{
	uint32_t place = ptt_contended_place(object);
	uint64_t entry;

	/* relaxed, both: as where they are written */
	if (!(__atomic_load_n(&ptt_contended_ever[place / 64], __ATOMIC_RELAXED) >> place % 64 & 1))
		return false;
	entry = __atomic_load_n(&ptt_contended_table[place], __ATOMIC_RELAXED);
	return (entry & PTT_OBJECT_MASK) == object && entry & PTT_CONTENDED_NOW;
}

/* All of these are safe in signal handlers, and take no lock. */

/* ptt_contended_wait - a thread is about to wait for @object. */
void ptt_contended_wait(uint64_t object) __attribute__((visibility("hidden")));

/* ptt_contended_waited - it waits no longer. */
void ptt_contended_waited(uint64_t object) __attribute__((visibility("hidden")));

/* ptt_contended_is_due - a thread takes @object at @site. Return: is its stack wanted, for others waited lately? */
bool ptt_contended_is_due(uint64_t object, uint64_t site) __attribute__((visibility("hidden")));

/* ptt_contended_taken - it has taken it, without waiting. @found: its stack is recorded. */
void ptt_contended_taken(uint64_t object, uint64_t site, bool found) __attribute__((visibility("hidden")));

/* ptt_contended_release - Return: does anybody wait for what is about to be released? */
bool ptt_contended_release(uint64_t object) __attribute__((visibility("hidden")));

/*
 * ptt_contended_wakes - the same, of a mutex that the calling thread holds: is there a waiter that sleeps? One that has been woken, but
 * has not run yet, waits for no release: others that take and release the mutex meanwhile do not keep it.
 */
bool ptt_contended_wakes(uint64_t object) __attribute__((visibility("hidden")));

#endif
