/* SPDX-License-Identifier: MIT */
/* records.h - the mapped ring of a stream: put records in, and take records out. layout.h has the protocol. */
/*
 * Which functions may run at the same time:
 *
 *              put (any thread, process,   take       unmap
 *              or signal handler)
 *   put        yes                         yes        yes
 *   take       yes                         no         no
 *
 * put (event.c, ring_put.c): async-signal-safe, allocates nothing, keeps errno, takes no lock, is no cancellation point.
 * take (ring_take.c) and px_buffer_unmap() belong to the controller. One thread at a time calls them; they do not block.
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

/* px_close - nobody records in the stream from now on, and no child takes it over. Safe in signal handlers. */
void px_close(struct px_stream *stream);

/* An event to record. */
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

/* px_clock - the time of a clock in nanoseconds. */
static inline uint64_t px_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* px_now - the time of the clock of the records. */
static inline uint64_t px_now(void)
{
	return px_clock(CLOCK_MONOTONIC);
}

/* px_records - does the stream record events of type @id? */
static inline bool px_records(const struct px_stream *stream, uint32_t id)
{
	/* relaxed: head decides whether a late or early event is recorded */
	return __atomic_load_n(&stream->record[id / 64], __ATOMIC_RELAXED) >> id % 64 & 1;
}

/* px_buffer_map - map the stream that @fd is open on, by raw system calls. Return: 0 or -errno. Safe in signal handlers. */
int px_buffer_map(struct px_buffer *buffer, int fd);
void px_buffer_unmap(struct px_buffer *buffer);

/* px_give_up - give up a record that nobody will finish. Return: its cells, or 0 if its writer finished it after all. */
uint32_t px_give_up(const struct px_buffer *buffer, uint64_t place);

/* px_writer_state - the kernel's state letter of the writer of the record at @place: 0 = it is dead, '?' = not known. */
char px_writer_state(const struct px_buffer *buffer, uint64_t place);

/* ------------------------------------------------------------ wake.c: analyzers and the agent wait for events, writers for room */

/* These functions use raw system calls: safe in signal handlers, keep errno, take no lock. */

/* px_wake - wake those sleepers in @sleepers (PX_WAITS_…) that wait. */
void px_wake(struct px_stream *stream, uint32_t sleepers);

/* px_wake_due - a bit of stream.waits is set: wake the sleepers that wait for the events up to place @end. */
void px_wake_due(struct px_stream *stream, uint64_t end) __attribute__((cold, noinline));

/* px_wake_writers - wake the writers that wait for room, if there is enough room with @used cells taken. */
void px_wake_writers(struct px_stream *stream, uint64_t used);

/* px_wake_agent - the agent looks for work, even if it is just about to sleep. */
void px_wake_agent(struct px_stream *stream);

/* ------------------------------------------------------------ ring_put.c: events that the trace point cannot record at once, and the stream's own events */

/* px_put_slow - record an event after the fast path failed. In FLUSH, this function may wait for room. */
void px_put_slow(const struct px_buffer *buffer, const struct px_event *event) __attribute__((cold, noinline));

/* px_put_torn - somebody gave up the record while its writer wrote it: record an ERROR event. */
void px_put_torn(const struct px_buffer *buffer) __attribute__((cold, noinline));

/*
 * px_put_own - record an event of the stream's own, and change flags in the same step
 * @mask, @wanted: the function changes nothing and returns false unless (flags & @mask) == @wanted
 * @set, @clear: flags of head
 * The event is left out if it is filtered out or there is no room at all. The flags change all the same.
 */
bool px_put_own(const struct px_buffer *buffer, const struct px_event *event, uint64_t mask, uint64_t wanted,
		uint64_t set, uint64_t clear);

/* ------------------------------------------------------------ ring_take.c: one reader at a time */

enum px_take { PX_TAKE_NONE, PX_TAKE_RECORD, PX_TAKE_UNFINISHED };

/* The state of the reader between records; zero at first. */
struct px_reader {
	uint64_t expected; /* place of the next record, if nothing is overwritten */
	uint64_t stalled;  /* place of a record that its writer does not finish, */
	uint64_t since;	   /* and since when; 0 = there is no such record */
};

/*
 * px_take - take the oldest record out
 * @to: room for the longest record
 * @gap_time: 0, or the time of the first event that was overwritten before this record
 * Return: PX_TAKE_UNFINISHED if the writer has not finished the record: call again later.
 */
enum px_take px_take(const struct px_buffer *buffer, struct px_reader *reader, struct px_record *to,
		     uint64_t *gap_time);

/* px_note_empty - let an UNTIL_FULL stream that stopped by itself go on, if it is empty now. */
void px_note_empty(const struct px_buffer *buffer);

#endif
