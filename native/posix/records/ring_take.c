/* SPDX-License-Identifier: MIT */
/* ring_take.c - takes records out of a stream, and gives up unfinished records of dead writers. */
#include "records.h"

#include "cells.h"

#define STALL_NS UINT64_C(10000000000)

/* Copy word by word. Writers may change the words meanwhile: the swap of tail shows whether they did. */
static void copy_out(void *to, const void *from, uint64_t size)
{
	uint64_t *out = to;
	const uint64_t *in = from;

	for (uint64_t i = 0; i < size / sizeof(*out); i++)
		out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
}

/* Is the record at @place unfinished for so long that the reader gives it up? */
static bool is_hopeless(const struct px_buffer *b, struct px_reader *reader, uint64_t place)
{
	uint64_t now = px_now();
	char state = px_writer_state(b, place);

	if (reader->stalled != place || !reader->since) {
		reader->stalled = place;
		reader->since = now;
	}
	if (!state)
		return true;
	/* siglongjmp() left the writer, or the writer died before it stored its id; a stopped writer may still go on */
	return now - reader->since > STALL_NS && state != 'T' && state != 't' && state != 'D';
}

/* The beginning of the gap before a record of time @end; @end if the beginning is not known. */
static uint64_t gap_time(const struct px_stream *stream, const struct px_reader *reader, uint64_t end)
{
	const struct px_victim *victim = &stream->victim[reader->expected % PX_VICTIMS];

	/* acquire: pairs with the writer's release; relaxed would be enough, as tail has shown the gap */
	if (__atomic_load_n(&victim->place, __ATOMIC_ACQUIRE) != reader->expected)
		return end;
	return __atomic_load_n(&victim->time, __ATOMIC_RELAXED);
}

void px_note_empty(const struct px_buffer *b)
{
	struct px_stream *stream = b->stream;
	uint64_t tail = __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE),
		 head = __atomic_load_n(&stream->head, __ATOMIC_SEQ_CST);

	if (PX_TAIL_PLACE(tail) != PX_PLACE(head))
		return;
	if (stream->policy != POSIX_TRACE_UNTIL_FULL || !(head & PX_HEAD_FULL) || head & PX_HEAD_STOPPED)
		return;
	/* if the swap fails, another thread was faster, and we come here again */
	__atomic_compare_exchange_n(&stream->head, &head, (head & ~PX_HEAD_FULL) | PX_HEAD_START_DUE, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

enum px_take px_take(const struct px_buffer *b, struct px_reader *reader, struct px_record *to, uint64_t *gap_began)
{
	struct px_stream *stream = b->stream;

	for (;;) {
		uint64_t tail = __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE), place = PX_TAIL_PLACE(tail);
		uint64_t head = __atomic_load_n(&stream->head, __ATOMIC_SEQ_CST);
		uint64_t mark, next, gap = 0;

		if (place == PX_PLACE(head)) {
			px_note_empty(b);
			return PX_TAKE_NONE;
		}
		mark = __atomic_load_n(&b->mark[place & b->mask], __ATOMIC_ACQUIRE);
		if (!px_is_of(mark, place) || PX_STATE(mark) == PX_RESERVED) {
			if (__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE) != tail)
				continue;
			px_help(b, head);
			if (!is_hopeless(b, reader, place) || !px_give_up(b, place))
				return PX_TAKE_UNFINISHED;
			continue;
		}
		next = (place + PX_CELLS(mark)) << 1;
		if (PX_STATE(mark) == PX_VOID) {
			if (__atomic_compare_exchange_n(&stream->tail, &tail, next | (tail & PX_TAIL_GAP), false,
							__ATOMIC_SEQ_CST, __ATOMIC_RELAXED) &&
			    !(tail & PX_TAIL_GAP))
				reader->expected = next >> 1;
			continue;
		}
		copy_out(to, px_record_at(b, place), (uint64_t)PX_CELLS(mark) * PX_CELL);
		if (tail & PX_TAIL_GAP)
			gap = gap_time(stream, reader, to->time);
		/* acquire above and seq_cst here: the copy is the record that was committed at this place */
		if (!__atomic_compare_exchange_n(&stream->tail, &tail, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		reader->expected = next >> 1;
		reader->since = 0;
		if (stream->full)
			__atomic_store_n(&stream->full, 0, __ATOMIC_RELAXED);
		px_wake_writers(stream, PX_PLACE(head) - (next >> 1));
		*gap_began = gap;
		return PX_TAKE_RECORD;
	}
}
