/* SPDX-License-Identifier: MIT */
/* unfinished.c - gives up records that nobody will finish. */
#include "unfinished.h"

#include "cells.h"
#include "meet.h"

uint32_t px_give_up(const struct px_buffer *b, uint64_t place)
{
	uint64_t *mark = &b->mark[place & b->mask], seen = __atomic_load_n(mark, __ATOMIC_ACQUIRE);

	if (seen != PX_WORD(place, PX_CELLS(seen), PX_RESERVED) ||
	    !__atomic_compare_exchange_n(mark, &seen, PX_WORD(place, PX_CELLS(seen), PX_VOID), false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return 0;
	/* relaxed: a count, and a flag that is reported later */
	__atomic_fetch_add(&b->stream->lost, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&b->stream->overrun, 1, __ATOMIC_RELAXED);
	return PX_CELLS(seen);
}

char px_writer_state(const struct px_buffer *b, uint64_t place)
{
	/* owner and position, as one word; without them, it died, or is, between reserving and writing that */
	uint64_t owner = __atomic_load_n((const uint64_t *)px_record_at(b, place), __ATOMIC_ACQUIRE);

	return (uint32_t)(owner >> 32) == (uint32_t)place ? px_thread_state((uint32_t)owner) : '?';
}
