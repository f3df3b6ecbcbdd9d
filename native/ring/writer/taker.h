/* SPDX-License-Identifier: MIT */
/* taker.h - must the time stamp of an acquisition wait until the acquisition is complete? */
/*
 * A time stamp instruction may run ahead of the atomic operation before it. A thread would then seem to take a lock before
 * the last holder released it. To wait costs as much as the stamp itself. It is necessary only if another thread has held
 * the object since this thread did. A table has the last taker of each object, by a hash of the object's address:
 *
 *   entry                  meaning                                     set by
 *   ---------------------  ------------------------------------------  ---------------------------------------
 *   0                      nothing of this hash was ever taken
 *   object, thread         no other thread has recorded a release      an acquisition; a shared acquisition
 *                          since that thread set the entry             only over 0
 *   PTT_TAKER_UNSURE       another thread may have                     shared acquisitions by several threads;
 *                                                                      a release by a thread that the entry does
 *                                                                      not name; objects that other processes use,
 *                                                                      that are initialized over a taken object,
 *                                                                      or that threads have waited for lately
 *
 * Releases check the table as well, because acquisitions may go unrecorded, at a lower level or behind a filter. An entry
 * that another object of the same hash overwrites only costs a fence.
 */
#ifndef PTT_TAKER_H
#define PTT_TAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "../platform/local.h"
#include "../layout/ptt_abi.h"

#define PTT_TAKER_COUNT 32768u
#define PTT_TAKER_HASH(object) ((uint32_t)(((uint64_t)(object) * UINT64_C(0x9E3779B97F4A7C15)) >> 49))
#define PTT_TAKER_UNSURE UINT64_MAX

extern uint64_t ptt_ring_taker[PTT_TAKER_COUNT] __attribute__((visibility("hidden")));

/* The effect of an event on its object. */
enum ptt_taking {
	PTT_TAKING_LOOK = -2,	 /* none, but the event must not take the fast path */
	PTT_TAKING_UNKNOWN = -1, /* an acquisition of an object with unknown users: always fenced, not in the table */
	PTT_TAKING_NONE,
	PTT_TAKING_MUTEX, /* an acquisition */
	PTT_TAKING_WRITE, /* of an rwlock */
	PTT_TAKING_READ,  /* an acquisition that other threads may share */
	PTT_TAKING_RELEASE,
	PTT_TAKING_INIT, /* a new object begins at this address */
};

/* ptt_taker_is_known - does the table say that only @self can have released @object since @self last took it? */
static inline bool ptt_taker_is_known(uint64_t object, const struct ptt_thread *self)
{
	/* thread entries are 128 bytes each, so their numbers fit in the upper 16 bits */
	uint64_t mine = object | (uint64_t)(uintptr_t)self << 41;

	/* relaxed: the object's own acquire and release order it against loads and stores of other takers */
	return ptt_local_is64(&ptt_ring_taker[PTT_TAKER_HASH(object)], mine);
}

/* ptt_taker_doubt - the next event of @object must not be treated as an event of an object with a single user. */
void ptt_taker_doubt(uint64_t object) __attribute__((visibility("hidden")));

/*
 * ptt_taker_knows - does an event of @object leave the table unchanged?
 * @fence: set if so: must the time stamp be fenced?
 */
static inline bool ptt_taker_knows(enum ptt_taking taking, uint64_t object, bool *fence)
{
	*fence = taking == PTT_TAKING_UNKNOWN || taking == PTT_TAKING_READ;
	if (taking <= PTT_TAKING_NONE)
		return true;
	/* relaxed: as in ptt_taker_is_known(). A lock that several threads share stays unsure while they read. */
	return (taking == PTT_TAKING_READ || taking == PTT_TAKING_RELEASE) &&
	       __atomic_load_n(&ptt_ring_taker[PTT_TAKER_HASH(object)], __ATOMIC_RELAXED) == PTT_TAKER_UNSURE;
}

/* ptt_taker_change - the part of ptt_taker_mark() for events that change the table. */
bool ptt_taker_change(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
	__attribute__((visibility("hidden")));

/*
 * ptt_taker_mark - note the effect of an event of @self on @object. Safe in signal handlers.
 * Return: true if the time stamp must be fenced.
 */
static inline bool ptt_taker_mark(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
{
	bool fence;

	return ptt_taker_knows(taking, object, &fence) ? fence : ptt_taker_change(taking, object, self);
}

#endif
