/* SPDX-License-Identifier: MIT */
/* ring_put.c - puts records in where the fast path fails (no room, a flag, another writer); the stream's own events. */
#include "records.h"

#include <linux/futex.h>

#include "cells.h"
#include "registry.h"
#include "platform/raw_syscall.h"

/* FLUSH waits for room while the agent makes progress. After this time without progress, FLUSH loses events. */
#define ROOM_WAIT_NS UINT64_C(5000000000)
/* LOOP: how many of the oldest records a writer recycles at a time. */
#define RECYCLE 8

/*
 * Others took this thread for dead, but the thread has come back. It may have overwritten the records of other threads. The
 * ERROR event tells the analyzer.
 */
void px_put_torn(const struct px_buffer *b)
{
	static const int error = ETIMEDOUT;
	struct px_event event = {.id = POSIX_TRACE_ERROR, .data = &error, .size = sizeof(error)};

	px_put_own(b, &event, PX_HEAD_STOPPED | PX_HEAD_FULL, 0, 0, 0);
}

static void finish(const struct px_buffer *b, uint64_t place, uint32_t cells)
{
	if (!px_finish(b, place, cells))
		px_put_torn(b);
}

static void count_lost(struct px_stream *stream)
{
	__atomic_fetch_add(&stream->lost, 1, __ATOMIC_RELAXED);
	/* release: pairs with the exchange that reads the status */
	__atomic_store_n(&stream->overrun, 1, __ATOMIC_RELEASE);
}

/* Return: the place after the finished records that begin at @place; @place if the first record is not finished. */
static uint64_t whole_from(const struct px_buffer *b, uint64_t place)
{
	uint64_t end = place;

	for (int i = 0; i < RECYCLE; i++) {
		uint64_t mark = __atomic_load_n(&b->mark[end & b->mask], __ATOMIC_ACQUIRE);

		if (!px_is_of(mark, end) || PX_STATE(mark) == PX_RESERVED)
			break;
		end += PX_CELLS(mark);
	}
	return end;
}

/* Store the time of the first record of a gap. Return: false if tail is no longer @tail. */
static bool note_victim(const struct px_buffer *b, uint64_t tail)
{
	struct px_stream *stream = b->stream;
	uint64_t place = PX_TAIL_PLACE(tail), time = __atomic_load_n(&px_record_at(b, place)->time, __ATOMIC_RELAXED);
	struct px_victim *victim = &stream->victim[place % PX_VICTIMS];

	if (__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE) != tail)
		return false;
	/* tail has not moved: the time belongs to the record at tail, and other threads here store the same time */
	__atomic_store_n(&victim->time, time, __ATOMIC_RELAXED);
	__atomic_store_n(&victim->place, place, __ATOMIC_RELEASE);
	return true;
}

/* LOOP: take the cells of the oldest records. Return: false if a thread still writes the first record. */
static bool recycle(const struct px_buffer *b, uint64_t tail)
{
	struct px_stream *stream = b->stream;
	uint64_t place = PX_TAIL_PLACE(tail), end = whole_from(b, place);

	if (end == place) {
		if (__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE) != tail)
			return true;
		return !px_writer_state(b, place) && px_give_up(b, place);
	}
	if (!(tail & PX_TAIL_GAP) && !note_victim(b, tail))
		return true;
	/* seq_cst: pairs with the reader's swap, which fails if we took its record */
	if (!__atomic_compare_exchange_n(&stream->tail, &tail, end << 1 | PX_TAIL_GAP, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return true;
	if (!__atomic_load_n(&stream->overrun, __ATOMIC_RELAXED))
		__atomic_store_n(&stream->overrun, 1, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&stream->full, __ATOMIC_RELAXED))
		__atomic_store_n(&stream->full, 1, __ATOMIC_RELAXED);
	return true;
}

/* FLUSH: wait until the agent has made room. Return: false if the agent does not make room. */
static bool wait_for_room(struct px_stream *stream, uint32_t cells)
{
	static const struct timespec slice = {.tv_nsec = 1000000};
	uint64_t seen = __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE), since = px_now();

	while (px_lives(stream) && !__atomic_load_n(&stream->closed, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&stream->stuck, __ATOMIC_ACQUIRE)) {
		uint32_t room = __atomic_load_n(&stream->room, __ATOMIC_SEQ_CST);
		uint64_t head, tail;

		__atomic_store_n(&stream->room_wanted, 1, __ATOMIC_SEQ_CST);
		head = __atomic_load_n(&stream->head, __ATOMIC_SEQ_CST);
		if (px_has_room(stream, head, cells, stream->limit) || head & PX_HEAD_FLAGS)
			return true;
		tail = __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE);
		if (tail != seen) {
			seen = tail;
			since = px_now();
		} else if (px_now() - since > ROOM_WAIT_NS) {
			return false;
		}
		px_wake(stream, PX_WAITS_AGENT);
		ptt_raw_futex(&stream->room, FUTEX_WAIT, room, &slice);
	}
	return false;
}

static struct px_event own_event(uint32_t id, const struct px_event *like, const void *data, uint32_t size)
{
	return (struct px_event){.id = id,
				 .pid = like->pid,
				 .tid = like->tid,
				 .thread = like->thread,
				 .address = like->address,
				 .data = data,
				 .size = size};
}

/* The stream is full: set FULL, and record the event @id in the cells that are kept for the stream's own events. */
static void become_full(const struct px_buffer *b, uint64_t head, uint32_t id, const struct px_event *like)
{
	static const int automatic = 1;
	uint32_t size = id == POSIX_TRACE_STOP ? sizeof(automatic) : 0, cells = px_cells(size);
	struct px_event event = own_event(id, like, &automatic, size);
	struct px_stream *stream = b->stream;
	uint64_t time;

	if (!px_records(stream, id) || !px_has_room(stream, head, cells, stream->ring_cells)) {
		__atomic_compare_exchange_n(&stream->head, &head, head | PX_HEAD_FULL, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
		return;
	}
	px_help(b, head);
	if (!px_move_head(stream, head, cells, (head & PX_HEAD_FLAGS) | PX_HEAD_FULL, &time))
		return;
	px_write_record(b, PX_PLACE(head), cells, time, &event, size);
	finish(b, PX_PLACE(head), cells);
}

/* Record the event @id and then @event, both in one step, and clear the flags. Return: false if head has moved. */
static bool put_two(const struct px_buffer *b, uint64_t head, uint32_t id, const struct px_event *event, uint32_t size)
{
	struct px_stream *stream = b->stream;
	uint32_t first_size = id == POSIX_TRACE_START ? sizeof(stream->filter) : 0, first = px_cells(first_size);
	uint32_t cells = px_cells(size);
	struct px_event before = own_event(id, event, stream->filter, first_size);
	uint64_t place = PX_PLACE(head), time;

	if (!px_records(stream, id))
		first = 0;
	px_help(b, head);
	if (!px_move_head(stream, head, first + cells, 0, &time))
		return false;
	px_write_record(b, place + first, cells, time, event, size);
	if (first) {
		/* until the first record is committed, the mark at its place covers both records */
		px_write_record(b, place, first, time, &before, first_size);
		px_commit(b, place + first, cells);
		finish(b, place, first);
	} else {
		finish(b, place, cells);
	}
	return true;
}

enum outcome { DONE, AGAIN, WAIT };

/* A flag or a lack of room stops the event: clear the obstacle, record the event, or lose it. */
static enum outcome put_blocked(const struct px_buffer *b, uint64_t head, const struct px_event *event, uint32_t size)
{
	struct px_stream *stream = b->stream;
	uint32_t cells = px_cells(size), more = px_cells(sizeof(stream->filter));
	uint64_t tail = __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE);
	bool room = PX_PLACE(head) + cells - PX_TAIL_PLACE(tail) <= stream->limit;

	if (head & PX_HEAD_STOPPED)
		return DONE;
	if (head & PX_HEAD_START_DUE && room)
		return put_two(b, head, POSIX_TRACE_START, event, size) ? DONE : AGAIN;
	if (head & PX_HEAD_FULL) {
		if (stream->policy == POSIX_TRACE_FLUSH && px_has_room(stream, head, cells + more, stream->limit))
			return put_two(b, head, POSIX_TRACE_RESUME, event, size) ? DONE : AGAIN;
		count_lost(stream);
		px_wake(stream, PX_WAITS_AGENT | PX_WAITS_READER);
		return DONE;
	}
	if (room)
		return AGAIN;
	if (stream->policy == POSIX_TRACE_LOOP) {
		if (recycle(b, tail))
			return AGAIN;
		count_lost(stream);
		return DONE;
	}
	if (stream->policy == POSIX_TRACE_FLUSH)
		return WAIT;
	/* the next attempt finds the flag, and counts the lost event */
	become_full(b, head, POSIX_TRACE_STOP, event);
	return AGAIN;
}

void px_put_slow(const struct px_buffer *b, const struct px_event *event)
{
	struct px_stream *stream = b->stream;
	uint32_t size = event->size < stream->max_data ? (uint32_t)event->size : stream->max_data;
	uint32_t cells = px_cells(size);
	uint64_t head, time;

	for (;;) {
		head = __atomic_load_n(&stream->head, __ATOMIC_ACQUIRE);
		if (__builtin_expect(head & PX_HEAD_FLAGS || !px_has_room(stream, head, cells, stream->limit), 0)) {
			enum outcome outcome = put_blocked(b, head, event, size);

			if (outcome == DONE)
				return;
			if (outcome == WAIT && !wait_for_room(stream, cells)) {
				if (!px_lives(stream))
					return; /* the stream has ended: no event is lost */
				become_full(b, __atomic_load_n(&stream->head, __ATOMIC_ACQUIRE), POSIX_TRACE_OVERFLOW,
					    event);
			}
			continue;
		}
		px_help(b, head);
		if (px_move_head(stream, head, cells, 0, &time))
			break;
	}
	px_write_record(b, PX_PLACE(head), cells, time, event, size);
	finish(b, PX_PLACE(head), cells);
}

bool px_put_own(const struct px_buffer *b, const struct px_event *event, uint64_t mask, uint64_t wanted, uint64_t set,
		uint64_t clear)
{
	struct px_stream *stream = b->stream;
	uint32_t size = (uint32_t)event->size, cells = px_cells(size);
	bool filtered = stream->filter[event->id / 64] >> event->id % 64 & 1;
	uint64_t head, flags, time;

	for (;;) {
		head = __atomic_load_n(&stream->head, __ATOMIC_ACQUIRE);
		if ((head & mask) != wanted)
			return false;
		flags = ((head & PX_HEAD_FLAGS) | set) & ~clear;
		if (!filtered && !px_has_room(stream, head, cells, stream->ring_cells - 2) &&
		    stream->policy == POSIX_TRACE_LOOP && recycle(b, __atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE)))
			continue;
		if (filtered || !px_has_room(stream, head, cells, stream->ring_cells - 2)) {
			if (__atomic_compare_exchange_n(&stream->head, &head, (head & ~PX_HEAD_FLAGS) | flags, false,
							__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				return true;
			continue;
		}
		px_help(b, head);
		if (px_move_head(stream, head, cells, flags, &time))
			break;
	}
	px_write_record(b, PX_PLACE(head), cells, time, event, size);
	finish(b, PX_PLACE(head), cells);
	return true;
}
