/* SPDX-License-Identifier: MIT */
/* buffer.c - a stream's ring: mapped; what becomes of events where there is no room; who is waiting, and who is dead. */
#include "buffer.h"

#include <sys/mman.h>

#include "meet.h"
#include "raw_syscall.h"
#include "trace_point.h"

#define STALL_NS UINT64_C(10000000000)
/* A ring up to that size is mapped at once, so that recording never waits for the kernel. */
#define POPULATE_MAX (UINT64_C(16) << 20)
/* FLUSH waits for room while its agent makes any; after that time without, it loses events. */
#define ROOM_WAIT_NS UINT64_C(5000000000)
/* LOOP: how many of the oldest records make room at a time. */
#define RECYCLE 8

/* ------------------------------------------------------------ mapping */

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
	/* one range, so that it can be given up in one step: head and marks, then the ring, then the ring again */
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
	/* seq_cst: a child that takes its parent's streams over looks at it */
	__atomic_store_n(&stream->closed, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < PX_EVENT_WORDS; i++)
		__atomic_store_n(&stream->record[i], 0, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ waking */

void px_wake(struct px_stream *stream, uint32_t who)
{
	/* seq_cst: whoever is to be woken sets its bit, looks again, and sleeps on the old value of bell */
	if (!(__atomic_fetch_and(&stream->waits, ~who, __ATOMIC_SEQ_CST) & who))
		return;
	__atomic_fetch_add(&stream->bell, 1, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&stream->bell, FUTEX_WAKE, INT_MAX, NULL);
}

/* Not for each record that is taken, which would wake many writers for few of them. */
static void tell_room(struct px_stream *stream, uint64_t used)
{
	if (used > stream->limit / 2)
		return;
	/* seq_cst: a writer raises room_wanted, looks for room, and sleeps on the old value of room */
	if (!__atomic_load_n(&stream->room_wanted, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&stream->room_wanted, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&stream->room, 1, __ATOMIC_SEQ_CST);
	ptt_raw_futex(&stream->room, FUTEX_WAKE, INT_MAX, NULL);
}

/* ------------------------------------------------------------ records given up */

/* Give up a record that nobody will finish. Return: its length, or 0 if it was finished after all. */
static uint32_t give_up(const struct px_buffer *b, uint64_t place)
{
	uint64_t *mark = &b->mark[place & b->mask], seen = __atomic_load_n(mark, __ATOMIC_ACQUIRE);

	if (seen != PX_WORD(place, PX_CELLS(seen), PX_RESERVED) ||
	    !__atomic_compare_exchange_n(mark, &seen, PX_WORD(place, PX_CELLS(seen), PX_VOID), false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return 0;
	/* relaxed: a count, and a flag that is told of later */
	__atomic_fetch_add(&b->stream->lost, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&b->stream->overrun, 1, __ATOMIC_RELAXED);
	return PX_CELLS(seen);
}

/* What the kernel says of the writer of the unfinished record at @place: its state, 0 = it is dead, '?' = not known. */
static char writer_state(const struct px_buffer *b, uint64_t place)
{
	/* owner and position, as one word; without them, it died, or is, between reserving and writing that */
	uint64_t owner = __atomic_load_n((const uint64_t *)px_record_at(b, place), __ATOMIC_ACQUIRE);

	return (uint32_t)(owner >> 32) == (uint32_t)place ? px_thread_state((uint32_t)owner) : '?';
}

/* ------------------------------------------------------------ writing */

/*
 * This thread was taken for dead, came back after all, and may have written where others had written meanwhile: an analyzer
 * is to know.
 */
void px_put_torn(const struct px_buffer *b)
{
	static const int error = ETIMEDOUT;
	struct px_event event = {.id = POSIX_TRACE_ERROR, .data = &error, .size = sizeof(error)};

	px_put_own(b, &event, PX_HEAD_STOPPED | PX_HEAD_FULL, 0, 0, 0);
}

void px_put_waking(const struct px_buffer *b, uint64_t end)
{
	struct px_stream *stream = b->stream;
	/* relaxed, and so is tail: px_finish() has looked with seq_cst, and px_wake() does again */
	uint32_t waits = __atomic_load_n(&stream->waits, __ATOMIC_RELAXED);

	if (waits & PX_WAITS_READER)
		px_wake(stream, PX_WAITS_READER);
	if (waits & PX_WAITS_AGENT &&
	    end - PX_TAIL_PLACE(__atomic_load_n(&stream->tail, __ATOMIC_RELAXED)) >= stream->limit / 2)
		px_wake(stream, PX_WAITS_AGENT);
}

static void count_lost(struct px_stream *stream)
{
	__atomic_fetch_add(&stream->lost, 1, __ATOMIC_RELAXED);
	/* release: pairs with the exchange that reads the status */
	__atomic_store_n(&stream->overrun, 1, __ATOMIC_RELEASE);
}

/* The first records from @place on that are whole: the place after them, @place if there is none. */
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

/* The first record of a gap: put down its time. Return: false if tail is no longer @tail. */
static bool note_victim(const struct px_buffer *b, uint64_t tail)
{
	struct px_stream *stream = b->stream;
	uint64_t place = PX_TAIL_PLACE(tail), time = __atomic_load_n(&px_record_at(b, place)->time, __ATOMIC_RELAXED);
	struct px_victim *victim = &stream->victim[place % PX_VICTIMS];

	if (__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE) != tail)
		return false;
	/* tail has not moved, so this is that record's time, and whoever else is here stores the same */
	__atomic_store_n(&victim->time, time, __ATOMIC_RELAXED);
	__atomic_store_n(&victim->place, place, __ATOMIC_RELEASE);
	return true;
}

/* LOOP: take the cells of the oldest records. Return: false if somebody is writing to the first. */
static bool recycle(const struct px_buffer *b, uint64_t tail)
{
	struct px_stream *stream = b->stream;
	uint64_t place = PX_TAIL_PLACE(tail), end = whole_from(b, place);

	if (end == place) {
		if (__atomic_load_n(&stream->tail, __ATOMIC_ACQUIRE) != tail)
			return true;
		return !writer_state(b, place) && give_up(b, place);
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

/* FLUSH: wait until the agent has made room. Return: false if it does not come to it. */
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

/* The stream is full: set FULL, and record @id, which says so, in the room that is kept for it. */
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
	px_finish(b, PX_PLACE(head), cells);
}

/* Record @event with @id before it, both in one step, and clear the flags. Return: false if head has moved. */
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
		/* until the first is committed, the mark of the place holds for both */
		px_write_record(b, place, first, time, &before, first_size);
		px_commit(b, place + first, cells);
		px_finish(b, place, first);
	} else {
		px_finish(b, place, cells);
	}
	return true;
}

enum outcome { DONE, AGAIN, WAIT };

/* The common way is barred: by a flag, or for want of room. */
static enum outcome clear_way(const struct px_buffer *b, uint64_t head, const struct px_event *event, uint32_t size)
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
	/* the next attempt finds the flag, and counts */
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
			enum outcome outcome = clear_way(b, head, event, size);

			if (outcome == DONE)
				return;
			if (outcome == WAIT && !wait_for_room(stream, cells)) {
				if (!px_lives(stream))
					return; /* the stream has ended, which is no loss */
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
	px_finish(b, PX_PLACE(head), cells);
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
	px_finish(b, PX_PLACE(head), cells);
	return true;
}

/* ------------------------------------------------------------ reading */

/* By words that writers may be changing meanwhile: the swap of tail tells whether they did. */
static void copy_out(void *to, const void *from, uint64_t size)
{
	uint64_t *out = to;
	const uint64_t *in = from;

	for (uint64_t i = 0; i < size / sizeof(*out); i++)
		out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
}

/* Nobody has finished the record at @place for long: is there reason to give it up? */
static bool is_hopeless(const struct px_buffer *b, struct px_reader *reader, uint64_t place)
{
	uint64_t now = px_now();
	char state = writer_state(b, place);

	if (reader->stalled != place || !reader->since) {
		reader->stalled = place;
		reader->since = now;
	}
	if (!state)
		return true;
	/* a writer that was left by siglongjmp(), or died before it could say who it was; but not one that is held up */
	return now - reader->since > STALL_NS && state != 'T' && state != 't' && state != 'D';
}

/* When did the gap begin that ends at a record of time @end? */
static uint64_t gap_time(const struct px_stream *stream, const struct px_reader *reader, uint64_t end)
{
	const struct px_victim *victim = &stream->victim[reader->expected % PX_VICTIMS];

	/* acquire: pairs with the writer's release; relaxed would do, as tail has told us of the gap */
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
	/* if that fails, somebody was faster, and we will come here again */
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
			if (!is_hopeless(b, reader, place) || !give_up(b, place))
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
		/* acquire, above, and seq_cst here: what was copied is the record that was committed there */
		if (!__atomic_compare_exchange_n(&stream->tail, &tail, next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		reader->expected = next >> 1;
		reader->since = 0;
		if (stream->full)
			__atomic_store_n(&stream->full, 0, __ATOMIC_RELAXED);
		tell_room(stream, PX_PLACE(head) - (next >> 1));
		*gap_began = gap;
		return PX_TAKE_RECORD;
	}
}
