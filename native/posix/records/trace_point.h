/* SPDX-License-Identifier: MIT */
/* trace_point.h - the way of an event into a stream, where nothing is in the way; ring_put.c has the rest. */
#ifndef PX_TRACE_POINT_H
#define PX_TRACE_POINT_H

#include "cells.h"
#include "records.h"

/* px_put - record an event of a traced process. */
static inline __attribute__((always_inline)) void px_put(const struct px_buffer *b, const struct px_event *event)
{
	struct px_stream *stream = b->stream;
	uint32_t size = event->size < stream->max_data ? (uint32_t)event->size : stream->max_data;
	uint32_t cells = px_cells(size);
	uint64_t head = __atomic_load_n(&stream->head, __ATOMIC_ACQUIRE), time;

	if (__builtin_expect(head & PX_HEAD_FLAGS || !px_has_room(stream, head, cells, stream->limit), 0))
		return px_put_slow(b, event);
	/* while the clock is read, the cell comes near */
	__builtin_prefetch(px_record_at(b, PX_PLACE(head)), 1);
	px_help(b, head);
	if (__builtin_expect(!px_move_head(stream, head, cells, 0, &time), 0))
		return px_put_slow(b, event);
	px_write_record(b, PX_PLACE(head), cells, time, event, size);
	if (__builtin_expect(!px_finish(b, PX_PLACE(head), cells), 0))
		px_put_torn(b);
}

#endif
