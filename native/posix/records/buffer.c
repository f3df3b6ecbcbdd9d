/* SPDX-License-Identifier: MIT */
/* buffer.c - maps and closes the ring of a stream, and gives up records that nobody will finish. */
#include "cells.h"

#include <sys/mman.h>

#include "registry.h"

/* The kernel populates a ring up to this size at once, so recording never waits for the kernel. */
#define POPULATE_MAX (UINT64_C(16) << 20)

#ifdef __SANITIZE_THREAD__
char px_handover;
#endif

int px_buffer_map(struct px_buffer *buffer, int fd)
{
	struct px_stream *stream;
	uint64_t head_size, ring_size;
	int err, flags = MAP_SHARED | MAP_FIXED;
	void *at;

	at = px_raw_mmap(NULL, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &err);
	if (err)
		return err;
	stream = at;
	head_size = stream->ring_offset;
	ring_size = (uint64_t)stream->ring_cells * PX_CELL;
	err = stream->magic == PX_STREAM_MAGIC && head_size >= PX_PAGE && head_size + ring_size <= stream->size &&
			      !(stream->ring_cells & (stream->ring_cells - 1)) && px_raw_size(fd) >= stream->size
		      ? 0
		      : -EINVAL;
	px_raw_munmap(at, PX_PAGE);
	if (err)
		return err;
	if (ring_size <= POPULATE_MAX)
		flags |= MAP_POPULATE;
	/* one range, so that one call unmaps it: head and marks, then the ring, then the ring again */
	at = px_raw_mmap(NULL, head_size + 2 * ring_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0,
			 &err);
	if (err)
		return err;
	px_raw_mmap(at, head_size + ring_size, PROT_READ | PROT_WRITE, flags, fd, 0, &err);
	if (!err)
		px_raw_mmap((char *)at + head_size + ring_size, ring_size, PROT_READ | PROT_WRITE, flags, fd,
			    (long)head_size, &err);
	if (err) {
		px_raw_munmap(at, head_size + 2 * ring_size);
		return err;
	}
	stream = at;
	buffer->mark = (uint64_t *)((char *)at + stream->mark_offset);
	buffer->ring = (char *)at + head_size;
	buffer->mask = stream->ring_cells - 1;
	buffer->stream = stream;
	return 0;
}

void px_buffer_unmap(struct px_buffer *buffer)
{
	struct px_stream *stream = buffer->stream;

	if (stream)
		px_raw_munmap(stream, px_mapped_size(stream));
	buffer->stream = NULL;
}

void px_close(struct px_stream *stream)
{
	/* seq_cst: pairs with the load of a child that takes over the streams of its parent */
	__atomic_store_n(&stream->closed, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < PX_EVENT_WORDS; i++)
		__atomic_store_n(&stream->record[i], 0, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ unfinished records */

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
	/* owner and position in one word; another position: the writer stopped before it stored this word */
	uint64_t owner = __atomic_load_n((const uint64_t *)px_record_at(b, place), __ATOMIC_ACQUIRE);

	return (uint32_t)(owner >> 32) == (uint32_t)place ? px_thread_state((uint32_t)owner) : '?';
}
