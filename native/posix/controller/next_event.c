/* SPDX-License-Identifier: MIT */
/* next_event.c - inserts OVERFLOW and RESUME where events were overwritten. */
#include "controller.h"

/* An event that reports a gap; it has no process and no thread. Return: false if the filter drops the event. */
static bool make_mark(const struct px_trace *t, struct px_record *to, trace_event_id_t id, uint64_t time)
{
	const struct px_stream *stream = t->buffer.stream;

	if (stream->filter[id / 64] >> id % 64 & 1)
		return false;
	memset(to, 0, sizeof(*to));
	to->event = (uint16_t)id;
	to->cells = px_cells(0);
	to->time = time;
	return true;
}

static void copy_record(struct px_record *to, const struct px_record *from)
{
	memcpy(to, from, (size_t)from->cells * PX_CELL);
}

enum px_take px_next_event(struct px_trace *t, struct px_record *to)
{
	uint64_t gap = 0;
	enum px_take taken;

	if (t->reading->phase == PX_NORMAL) {
		taken = px_take(&t->buffer, &t->reading->reader, to, &gap);
		if (taken != PX_TAKE_RECORD || !gap)
			return taken;
		/* hold the record: OVERFLOW and RESUME go before it, and RESUME has its time */
		copy_record(&t->reading->held, to);
		t->reading->phase = PX_RESUME_DUE;
		if (make_mark(t, to, POSIX_TRACE_OVERFLOW, gap))
			return PX_TAKE_RECORD;
	}
	if (t->reading->phase == PX_RESUME_DUE) {
		t->reading->phase = PX_HELD_DUE;
		if (make_mark(t, to, POSIX_TRACE_RESUME, t->reading->held.time))
			return PX_TAKE_RECORD;
	}
	t->reading->phase = PX_NORMAL;
	copy_record(to, &t->reading->held);
	return PX_TAKE_RECORD;
}
