/* SPDX-License-Identifier: MIT */
/* records.h - a stream's ring as a process has it mapped: records go in and come out; layout.h says how. */
/*
 * What may run at the same time as what:
 *
 *              put (any thread, process,   take       dispose
 *              or signal handler)
 *   put        yes                         yes        yes
 *   take       yes                         no         no
 *
 * put (event.c, ring_put.c): async-signal-safe, allocates nothing, keeps errno, takes no lock, is no cancellation point.
 * take (ring_take.c) and dispose are the controller's, which lets one thread at a time do them; they do not block.
 */
#ifndef PX_RECORDS_H
#define PX_RECORDS_H

#include "posix.h"

struct px_buffer {
	struct px_stream *stream;
	uint64_t *mark;
	char *ring; /* mapped twice */
	uint32_t mask;
};

/* ------------------------------------------------------------ buffer.c */

/* px_close - nobody records in the stream any more, and nobody comes to know of it. */
void px_close(struct px_stream *stream);

/* What is to be recorded. */
struct px_event {
	uint32_t id;
	uint32_t pid;
	uint32_t tid;
	uint64_t thread;
	uint64_t address;
	const void *data;
	uint64_t size;
};

/* px_mapped_size - bytes from the stream's head to the end of the second mapping of its ring. */
static inline uint64_t px_mapped_size(const struct px_stream *stream)
{
	return stream->ring_offset + 2 * (uint64_t)stream->ring_cells * PX_CELL;
}

static inline uint64_t px_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline bool px_records(const struct px_stream *stream, uint32_t id)
{
	/* relaxed: head decides what is recorded late or early */
	return __atomic_load_n(&stream->record[id / 64], __ATOMIC_RELAXED) >> id % 64 & 1;
}

/* px_buffer_map - map the stream that @fd is open on, by raw system calls. Return: 0 or -errno. Safe in signal handlers. */
int px_buffer_map(struct px_buffer *buffer, int fd);
void px_buffer_unmap(struct px_buffer *buffer);

/* px_give_up - give up a record that nobody will finish. Return: its length, or 0 if it was finished after all. */
uint32_t px_give_up(const struct px_buffer *buffer, uint64_t place);

/* px_writer_state - what the kernel says of the writer of the record at @place: 0 = it is dead, '?' = not known. */
char px_writer_state(const struct px_buffer *buffer, uint64_t place);

/* ------------------------------------------------------------ wake.c: analyzers and the agent wait for events, writers for room */

/* Wakes by raw system calls: safe in signal handlers, keeps errno, takes no lock. */

/* px_wake - wake those of @sleepers (PX_WAITS_…) that wait. */
void px_wake(struct px_stream *stream, uint32_t sleepers);

/* px_wake_due - somebody waits: wake whom the events up to place @end concern. */
void px_wake_due(struct px_stream *stream, uint64_t end) __attribute__((cold, noinline));

/* px_wake_writers - wake the writers that wait for room, if there is enough room with @used cells taken. */
void px_wake_writers(struct px_stream *stream, uint64_t used);

/* px_wake_agent - have the agent look what there is to do, whether it waits or is about to. */
void px_wake_agent(struct px_stream *stream);

/* ------------------------------------------------------------ ring_put.c: events that the trace point had no free way for, and the stream's own */

/* px_put_slow - record an event where the fast path could not. */
void px_put_slow(const struct px_buffer *buffer, const struct px_event *event) __attribute__((cold, noinline));

/* px_put_torn - the record just written was given up meanwhile. */
void px_put_torn(const struct px_buffer *buffer) __attribute__((cold, noinline));

/*
 * px_put_own - record an event of the stream's own, and change flags in the same step
 * @set, @clear: flags of head
 * @wanted: nothing happens, and false is returned, if not (flags & @mask) == @wanted
 * The event is left out if it is filtered out or there is no room at all; the flags change all the same.
 */
bool px_put_own(const struct px_buffer *buffer, const struct px_event *event, uint64_t mask, uint64_t wanted,
		uint64_t set, uint64_t clear);

/* ------------------------------------------------------------ ring_take.c: one reader at a time */

enum px_take { PX_TAKE_NONE, PX_TAKE_RECORD, PX_TAKE_UNFINISHED };

/* What the reader remembers from one record to the next; zero at first. */
struct px_reader {
	uint64_t expected; /* place of the next record, if nothing is overwritten */
	uint64_t stalled;  /* place of a record that is not being finished, */
	uint64_t since;	   /* since when; 0 = there is none */
};

/*
 * px_take - take the oldest record out
 * @to: room for the longest record
 * @gap_time: 0, or the time of the first of the events that were overwritten before this one
 * PX_TAKE_UNFINISHED: its writer has not finished it; look again.
 */
enum px_take px_take(const struct px_buffer *buffer, struct px_reader *reader, struct px_record *to,
		     uint64_t *gap_time);

/* px_note_empty - if all has been taken out of a stream that stopped when it was full, it goes on. */
void px_note_empty(const struct px_buffer *buffer);

#endif
