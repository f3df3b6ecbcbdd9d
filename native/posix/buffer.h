/* SPDX-License-Identifier: MIT */
/* buffer.h - a stream's ring as a process has it mapped: records go in and come out; layout.h tells how. */
/*
 * Who may run with whom:
 *
 *              put (any thread, process,   take       dispose
 *              or signal handler)
 *   put        yes                         yes        yes
 *   take       yes                         no         no
 *
 * put (trace_point.h): async-signal-safe, allocates nothing, keeps errno, takes no lock, is no cancellation point. take and dispose are
 * the controller's, who lets one thread at a time do them; they do not block.
 */
#ifndef PX_BUFFER_H
#define PX_BUFFER_H

#include <linux/futex.h>

#include "posix.h"

struct px_buffer {
	struct px_stream *stream;
	uint64_t *mark;
	char *ring; /* mapped twice */
	uint32_t mask;
};

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
	/* relaxed: what is recorded late or early is decided by head */
	return __atomic_load_n(&stream->record[id / 64], __ATOMIC_RELAXED) >> id % 64 & 1;
}

/* px_buffer_map - map the stream that @fd is open on, by raw system calls. Return: 0 or -errno. Safe in signal handlers. */
int px_buffer_map(struct px_buffer *buffer, int fd);
void px_buffer_unmap(struct px_buffer *buffer);

/* px_lives - does the controller of the stream still hold it? */
static inline bool px_lives(const struct px_stream *stream)
{
	/* the first word of a robust mutex is its futex: 0 = given up, OWNER_DIED = the kernel says so */
	uint32_t word = __atomic_load_n((const uint32_t *)stream->life, __ATOMIC_RELAXED);

	return word && !(word & FUTEX_OWNER_DIED);
}

/*
 * px_put_own - record an event of the stream's own, and change flags in the same step
 * @set, @clear: flags of head
 * @wanted: nothing happens, and false is returned, if not (flags & @mask) == @wanted
 * The event is left out if it is filtered out or there is no room at all; the flags change all the same.
 */
bool px_put_own(const struct px_buffer *buffer, const struct px_event *event, uint64_t mask, uint64_t wanted,
		uint64_t set, uint64_t clear);

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

/* px_wake - wake those of @who that wait. */
void px_wake(struct px_stream *stream, uint32_t who);

#endif
