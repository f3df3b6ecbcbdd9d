/* SPDX-License-Identifier: MIT */
/* cells.h - how a writer takes, writes and commits cells of a ring. layout.h describes cells and marks. */
#ifndef PX_CELLS_H
#define PX_CELLS_H

#include "records.h"

/* ------------------------------------------------------------ cells that pass from one writer to the next writer */

/*
 * The reader moves tail, and so hands the cells of a writer to another writer. The reader has the stream mapped a second time.
 * ThreadSanitizer compares addresses and does not see the order between the two mappings. These functions show the order.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

/* The address that stands for the hand-over. */
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

/* ------------------------------------------------------------ marks */

static inline struct px_record *px_record_at(const struct px_buffer *b, uint64_t place)
{
	return (struct px_record *)(b->ring + (place & b->mask) * PX_CELL);
}

static inline bool px_is_of(uint64_t mark, uint64_t place)
{
	return PX_PLACE(mark) == place && PX_STATE(mark);
}

/* Is the mark from an earlier round of the ring? A mark from a later round shows that the caller is late. */
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
	/* relaxed: only the place in the mark matters; acq_rel: others see the mark before they see head move */
	seen = __atomic_load_n(mark, __ATOMIC_RELAXED);
	if (px_is_old(seen, place))
		__atomic_compare_exchange_n(mark, &seen, PX_WORD(place, cells, PX_RESERVED), false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/*
 * Return: false if the record was given up.
 * A plain store is enough: a reader that comes too early sees an unfinished record, and looks again soon. Others give up a
 * record only if its writer is dead, or has not moved for STALL_NS.
 */
static inline bool px_commit(const struct px_buffer *b, uint64_t place, uint32_t cells)
{
	uint64_t *mark = &b->mark[place & b->mask], seen = __atomic_load_n(mark, __ATOMIC_RELAXED);

	if (__builtin_expect(!px_is_old(seen, place) && seen != PX_WORD(place, PX_CELLS(seen), PX_RESERVED), 0))
		return false;
	px_hand_over();
	/* release: pairs with the acquire load of the reader, or of the thread that recycles the record */
	__atomic_store_n(mark, PX_WORD(place, cells, PX_COMMITTED), __ATOMIC_RELEASE);
	return true;
}

/* ------------------------------------------------------------ writing */

/* Most data is short: a call would cost more than the copy. */
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
	/* the writer first, in case it dies here; release: nobody takes the other fields of an earlier round for ours */
	__atomic_store_n((uint64_t *)r, (uint64_t)(uint32_t)place << 32 | e->tid, __ATOMIC_RELEASE);
	r->pid = e->pid;
	r->size = size;
	r->event = (uint16_t)e->id;
	r->truncated = size < e->size;
	r->cells = cells;
	/* relaxed: another writer may load the time, and then find that it is late */
	__atomic_store_n(&r->time, time, __ATOMIC_RELAXED);
	r->address = e->address;
	r->thread = e->thread;
	px_copy_in(r->data, e->data, size);
}

static inline bool px_move_head(struct px_stream *stream, uint64_t head, uint32_t cells, uint64_t flags, uint64_t *time)
{
	*time = px_now();
	/* seq_cst: a reader that sees head equal to tail sees an empty stream */
	return __atomic_compare_exchange_n(&stream->head, &head, PX_WORD(PX_PLACE(head) + cells, cells, flags), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline bool px_has_room(const struct px_stream *stream, uint64_t head, uint64_t cells, uint64_t limit)
{
	return PX_PLACE(head) + cells - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE)) <= limit;
}

/* Commit the record at @place, and wake the sleepers that wait for it. Return: false if the record was given up. */
static inline bool px_finish(const struct px_buffer *b, uint64_t place, uint32_t cells)
{
	bool ours = px_commit(b, place, cells);

	/* seq_cst, after head has moved: a sleeper that sets its bit and then finds head unmoved is seen here */
	if (__builtin_expect(__atomic_load_n(&b->stream->waits, __ATOMIC_SEQ_CST) != 0, 0))
		px_wake_due(b->stream, place + cells);
	return ours;
}

#endif
