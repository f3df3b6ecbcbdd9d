/* SPDX-License-Identifier: MIT */
/* contended.h - the locks that threads have waited for lately, and the locks that they wait for now: only their holders' stacks count. */
/*
 * The table's index is a hash of the address. A lock stays in its entry while threads wait for it, and for some more
 * acquisitions without a wait. Then it is an ordinary lock again. If two contended locks have the same hash, the first lock
 * stays in the table as long as threads wait for it.
 */
#ifndef PTT_CONTENDED_H
#define PTT_CONTENDED_H

#include <stdbool.h>
#include <stdint.h>

#include "../layout/ptt_abi.h"
#include "writer.h"

#define PTT_CONTENDED_BITS 12

/*
 * object:48 waiters:8 calm:7 owed:1
 * calm: number of stacks that acquisitions without a wait may still record
 * owed: no release since the last wait began has had its stack recorded
 */
#define PTT_CONTENDED_NOW (UINT64_C(0x7fff) << 48) /* waiters and calm; both are 0 if the lock is ordinary again */

extern uint64_t ptt_contended_table[1u << PTT_CONTENDED_BITS] __attribute__((visibility("hidden")));

/* One bit for each entry: was the entry ever used? The bits take a few cache lines; the table would fill the first-level cache. */
extern uint64_t ptt_contended_ever[(1u << PTT_CONTENDED_BITS) / 64] __attribute__((visibility("hidden")));

static inline uint32_t ptt_contended_place(uint64_t object)
{
	return (uint32_t)(object * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PTT_CONTENDED_BITS));
}

static inline uint64_t *ptt_contended_entry(uint64_t object)
{
	return &ptt_contended_table[ptt_contended_place(object)];
}

/* ptt_contended_was - may a thread ever have waited for @object? */
static inline bool ptt_contended_was(uint64_t object)
{
	uint32_t place = ptt_contended_place(object);

	/* relaxed: as at the write */
	return __atomic_load_n(&ptt_contended_ever[place / 64], __ATOMIC_RELAXED) >> place % 64 & 1;
}

/*
 * ptt_contended_knows - can ptt_contended_is_due() or ptt_contended_release() return true for @object? For the path without
 * a call.
 */
static inline bool ptt_contended_knows(uint64_t object)
{
	uint64_t entry;

	if (!ptt_contended_was(object))
		return false;
	/* relaxed: as at the write */
	entry = __atomic_load_n(ptt_contended_entry(object), __ATOMIC_RELAXED);
	return (entry & PTT_OBJECT_MASK) == object && entry & PTT_CONTENDED_NOW;
}

/* For an object and a site, ptt_contended_is_due() is false until @ticks after @since, both in units of 2^PTT_RECENT_SHIFT ticks. */
struct ptt_contended_quiet {
	uint64_t key;
	uint32_t since;
	uint32_t ticks;
};

/*
 * State of the calling thread. A signal handler between two writes may mix two entries: then one of many stacks is missing
 * for a while.
 */
#define PTT_CONTENDED_QUIET_BITS 3
extern __thread struct ptt_contended_quiet ptt_contended_quiet[1u << PTT_CONTENDED_QUIET_BITS]
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A number for an object and a site; its upper bits are evenly spread. */
static inline uint64_t ptt_contended_key(uint64_t object, uint64_t site)
{
	return (object << 16 ^ site) * UINT64_C(0x9e3779b97f4a7c15);
}

/* ptt_contended_between - time between two times; both may come from events, which have only some bits of the time. */
static inline uint32_t ptt_contended_between(uint32_t then, uint32_t now)
{
	return (now - then) & (uint32_t)(PTT_TIME_MASK >> PTT_RECENT_SHIFT);
}

/* ptt_contended_is_quiet - is it known without a call that ptt_contended_is_due() is false? */
static inline bool ptt_contended_is_quiet(uint64_t object, uint64_t site)
{
	uint64_t key = ptt_contended_key(object, site);
	const struct ptt_contended_quiet *quiet = &ptt_contended_quiet[key >> (64 - PTT_CONTENDED_QUIET_BITS)];
	uint32_t recent;

	return quiet->key == key && ptt_ring_recent(&recent) &&
	       ptt_contended_between(quiet->since, recent) < quiet->ticks;
}

/* All functions below are safe in signal handlers and take no lock. */

/* ptt_contended_wait - a thread is about to wait for @object. */
void ptt_contended_wait(uint64_t object) __attribute__((visibility("hidden")));

/* ptt_contended_waited - the thread no longer waits for @object. */
void ptt_contended_waited(uint64_t object) __attribute__((visibility("hidden")));

/*
 * ptt_contended_is_due - is the stack of a thread that takes @object at @site wanted, because others waited for @object
 * lately?
 */
bool ptt_contended_is_due(uint64_t object, uint64_t site) __attribute__((visibility("hidden")));

/* ptt_contended_taken - the thread has taken @object without a wait. @recorded: its stack is recorded. */
void ptt_contended_taken(uint64_t object, uint64_t site, bool recorded) __attribute__((visibility("hidden")));

/* ptt_contended_release - does a thread wait for @object, which the calling thread is about to release? */
bool ptt_contended_release(uint64_t object) __attribute__((visibility("hidden")));

/*
 * ptt_contended_wakes - the same for a mutex that the calling thread holds: is there a sleeping waiter? A waiter that was
 * woken, but has not run yet, waits for no release: other threads may take and release the mutex meanwhile.
 */
bool ptt_contended_wakes(uint64_t object) __attribute__((visibility("hidden")));

#endif
