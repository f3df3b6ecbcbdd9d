/* SPDX-License-Identifier: MIT */
/* taker.h - must the time stamp of an acquisition wait for the acquisition to complete? */
/*
 * A time stamp instruction may run ahead of the atomic operation before it, so that a lock seems taken before the last
 * holder released it. Waiting costs as much as the stamp itself, and is needed only where another thread has held the
 * object since this one did. A table says, by a hash of the object's address, who took it last:
 *
 *   entry                  means                                       set by
 *   ---------------------  ------------------------------------------  ---------------------------------------
 *   0                      nothing of this hash was ever taken
 *   object, thread         nobody else has recorded a release of it    an acquisition; a shared one only over 0
 *                          since that thread set the entry
 *   PTT_TAKER_UNSURE       others may have                             shared acquisitions by several threads;
 *                                                                      a release by a thread that the entry does
 *                                                                      not name; objects that other processes use, or new ones
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

	/* relaxed: the object's own acquire and release order it against those of its other takers */
	return ptt_local_is64(&ptt_ring_taker[PTT_TAKER_HASH(object)], mine);
}

/*
 * ptt_taker_mark - note what @self does to @object
 * Return: whether its time stamp has to be fenced. Safe in signal handlers.
 */
bool ptt_taker_mark(enum ptt_taking taking, uint64_t object, const struct ptt_thread *self)
	__attribute__((visibility("hidden")));

#endif
