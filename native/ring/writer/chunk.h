/* SPDX-License-Identifier: MIT */
/* chunk.h - how the slow paths of a writer come by room. Safe in signal handlers, keeps errno. */
#ifndef PTT_CHUNK_H
#define PTT_CHUNK_H

#include "session.h"

static inline uint32_t ptt_thread_index(const struct ptt_thread *self)
{
	return (uint32_t)(self - ptt_threads(ptt_segment_of(self)));
}

/* ptt_chunk_index - the chunk that an offset, or a head, lies in. */
static inline uint32_t ptt_chunk_index(const struct ptt_segment *segment, uint64_t head)
{
	return (uint32_t)(((head & PTT_HEAD_OFFSET_MASK) - segment->chunk_offset) / segment->chunk_size);
}

/* How an attempt to get room ended: here, in a signal handler that came between, or not at all. */
enum ptt_refill { PTT_REFILL_DONE, PTT_REFILL_BY_SIGNAL_HANDLER, PTT_REFILL_LOST };

/*
 * ptt_chunk_refill - give @self, whose head is @head, a chunk with room; a lost event is counted
 * @waited_ns: the time that it had to wait is added
 * May sleep, as the segment's policy says.
 */
enum ptt_refill ptt_chunk_refill(struct ptt_thread *self, uint64_t head, uint64_t *waited_ns);

/* ptt_chunk_close - the head has moved on from the chunk that it was in at @head. */
void ptt_chunk_close(struct ptt_thread *self, uint64_t head);

#endif
