/* SPDX-License-Identifier: MIT */
/* taker.h - must the time stamp of an acquisition wait for the acquisition to complete? */
/*
 * A time stamp instruction may run ahead of the atomic operation before it, so that a lock seems taken before the last
 * holder released it. Waiting costs as much as the stamp itself, and is needed only where another thread has held the
 * object since this one did. A table has, by a hash of the object's address, its last taker:
 *
 *   entry                  means                                       set by
 *   ---------------------  ------------------------------------------  ---------------------------------------
 *   0                      nothing of this hash was ever taken
 *   object, thread         nobody else has recorded a release of it    an acquisition; a shared one only over 0
 *                          since that thread set the entry
 *   PTT_TAKER_UNSURE       others may have                             shared acquisitions by several threads;
 *                                                                      a release by a thread that the entry does
 *                                                                      not name; objects that other processes use,
 *                                                                      that are made anew where one was taken, or
 *                                                                      that threads have waited for lately
 *
 * A release looks as well, since acquisitions may go unrecorded: at a lower level, behind a filter. Entries lost to other
 * objects of the same hash only cost a fence.
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

/* What an event does to an object. */
enum ptt_taking {
	PTT_TAKING_LOOK = -2,	 /* nothing, but the event is not to go by the short way */
	PTT_TAKING_UNKNOWN = -1, /* an acquisition of an object whose users are not known: always fenced, leaves no mark */
	PTT_TAKING_NONE,
	PTT_TAKING_MUTEX, /* an acquisition */
	PTT_TAKING_WRITE, /* of an rwlock */
	PTT_TAKING_READ,  /* the same, beside others */
	PTT_TAKING_RELEASE,
	PTT_TAKING_INIT, /* another object begins at this address */
};

/* ptt_taker_is_known - does the table say that nobody but @self can have released @object since @self took it last? */
static inline bool ptt_taker_is_known(uint64_t object, const struct ptt_thread *self)
{
	/* thread entries are 128 bytes each, so their numbers get into the upper 16 bits */
	uint64_t mine = object | (uint64_t)(uintptr_t)self << 41;

	/* relaxed: the object's own acquire and release order it against the loads and stores of its other takers */
	return ptt_local_is64(&ptt_ring_taker[PTT_TAKER_HASH(object)], mine);
}

/* ptt_taker_doubt - the next event of @object is not to be taken for one of an object that only its taker uses. */
void ptt_taker_doubt(uint64_t object) __attribute__((visibility("hidden")));

/*
 * ptt_taker_knows - need the table not be changed for what @self does to @object?
 * @fence: set if not: whether its time stamp has to be fenced
 */
static inline bool ptt_taker_knows(enum ptt_taking taking, uint64_t object, bool *fence)
{
	*fence = taking == PTT_TAKING_UNKNOWN || taking == PTT_TAKING_READ;
	if (taking <= PTT_TAKING_NONE)
		return true;
	/* relaxed: as in ptt_taker_is_known(). A lock that several threads share stays unsure as long as they read. */
	return (taking == PTT_TAKING_READ || taking == PTT_TAKING_RELEASE) &&
	       __atomic_load_n(&ptt_ring_taker[PTT_TAKER_HASH(object)], __ATOMIC_RELAXED) == PTT_TAKER_UNSURE;
}

/* ptt_taker_change - what ptt_taker_mark() does where ptt_taker_knows() says no. */
bool ptt_taker_change(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
	__attribute__((visibility("hidden")));

/*
 * ptt_taker_mark - note what @self does to @object
 * Return: whether its time stamp has to be fenced. Safe in signal handlers.
 */
static inline bool ptt_taker_mark(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
{
	bool fence;

	return ptt_taker_knows(taking, object, &fence) ? fence : ptt_taker_change(taking, object, self);
}

#endif
