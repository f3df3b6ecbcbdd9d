/* SPDX-License-Identifier: MIT */
/* cells.h - cells of a ring and their marks: how a place is taken, written, committed. layout.h says what they hold. */
#ifndef PX_CELLS_H
#define PX_CELLS_H

#include "records.h"

/* ---- records that pass from one writer to the next one ---- */

/*
 * A writer's cells become another writer's by way of the reader, which moves tail. The reader has the stream mapped a second
 * time, and ThreadSanitizer, which goes by addresses, does not see that the two met there.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

/* What it takes for their meeting point. */
extern char px_handover __attribute__((visibility("hidden")));

/* px_hand_over - the record is committed: later writes to its cells come after it. px_take_over - the cells are ours. */
static inline void px_hand_over(void)
{
	__tsan_release(&px_handover);
}

static inline void px_take_over(void)
{
	__tsan_acquire(&px_handover);
}
#else
static inline void px_hand_over(void)
{
}

static inline void px_take_over(void)
{
}
#endif

/* ---- cells ---- */

/* ------------------------------------------------------------ marks */

static inline struct px_record *px_record_at(const struct px_buffer *b, uint64_t place)
{
	return (struct px_record *)(b->ring + (place & b->mask) * PX_CELL);
}

static inline bool px_is_of(uint64_t mark, uint64_t place)
{
	return PX_PLACE(mark) == place && PX_STATE(mark);
}

/* Is this mark what an earlier round left? One of a later round shows that the caller is late. */
static inline bool px_is_old(uint64_t mark, uint64_t place)
{
	return !PX_STATE(mark) || PX_PLACE(mark) < place;
}

/* Set the mark of the last reservation if its writer has not set it yet; only @head has the length of that reservation. */
static inline void px_help(const struct px_buffer *b, uint64_t head)
{
	uint32_t cells = PX_CELLS(head);
	uint64_t place = PX_PLACE(head) - cells, *mark = &b->mark[place & b->mask], seen;

	if (!cells)
		return;
	/* relaxed: a mark of that place, whatever it says, is all we want; acq_rel: others see it before they see head move */
	seen = __atomic_load_n(mark, __ATOMIC_RELAXED);
	if (px_is_old(seen, place))
		__atomic_compare_exchange_n(mark, &seen, PX_WORD(place, cells, PX_RESERVED), false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/*
 * Return: false if the record was given up.
 * A plain store: the reader that looks for it too early takes the record for unfinished, and looks again soon. Whoever
 * gives records up does so only if their writers are dead, or have not moved for STALL_NS.
 */
static inline bool px_commit(const struct px_buffer *b, uint64_t place, uint32_t cells)
{
	uint64_t *mark = &b->mark[place & b->mask], seen = __atomic_load_n(mark, __ATOMIC_RELAXED);

	if (__builtin_expect(!px_is_old(seen, place) && seen != PX_WORD(place, PX_CELLS(seen), PX_RESERVED), 0))
		return false;
	px_hand_over();
	/* release: the acquire load of the reader, or of the thread that recycles the record, sees it */
	__atomic_store_n(mark, PX_WORD(place, cells, PX_COMMITTED), __ATOMIC_RELEASE);
	return true;
}

/* ------------------------------------------------------------ writing */

/* Data is short, mostly: then a call would cost more than the copy. */
static inline void px_copy_in(void *to, const void *from, uint32_t size)
{
	if (size == 16)
		memcpy(to, from, 16);
	else if (size == 8)
		memcpy(to, from, 8);
	else if (size == 4)
		memcpy(to, from, 4);
	else if (size)
		memcpy(to, from, size);
}

static inline void px_write_record(const struct px_buffer *b, uint64_t place, uint32_t cells, uint64_t time,
				   const struct px_event *e, uint32_t size)
{
	struct px_record *r = px_record_at(b, place);

	px_take_over();
	/* the writer, in case that it gets no further; release: the time and so on of an earlier round are never ours */
	__atomic_store_n((uint64_t *)r, (uint64_t)(uint32_t)place << 32 | e->tid, __ATOMIC_RELEASE);
	r->pid = e->pid;
	r->size = size;
	r->event = (uint16_t)e->id;
	r->truncated = size < e->size;
	r->cells = cells;
	/* relaxed: another writer may look at it, and then find that it is late */
	__atomic_store_n(&r->time, time, __ATOMIC_RELAXED);
	r->address = e->address;
	r->thread = e->thread;
	px_copy_in(r->data, e->data, size);
}

static inline bool px_move_head(struct px_stream *stream, uint64_t head, uint32_t cells, uint64_t flags, uint64_t *time)
{
	*time = px_now();
	/* seq_cst: the reader that sees tail and head equal sees the stream empty */
	return __atomic_compare_exchange_n(&stream->head, &head, PX_WORD(PX_PLACE(head) + cells, cells, flags), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline bool px_has_room(const struct px_stream *stream, uint64_t head, uint64_t cells, uint64_t limit)
{
	return PX_PLACE(head) + cells - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE)) <= limit;
}

/* Commit the record of that place, and see what waits for it. Return: false if the record was given up. */
static inline bool px_finish(const struct px_buffer *b, uint64_t place, uint32_t cells)
{
	bool ours = px_commit(b, place, cells);

	/* after head was moved, in the order of all: whoever sets a bit and then finds head where it was is seen here */
	if (__builtin_expect(__atomic_load_n(&b->stream->waits, __ATOMIC_SEQ_CST) != 0, 0))
		px_wake_due(b->stream, place + cells);
	return ours;
}

#endif
