/* SPDX-License-Identifier: MIT */
/* buffer.h - a stream's ring as a process has it mapped: records go in and come out; layout.h says how. */
/*
 * What may run at the same time as what:
 *
 *              put (any thread, process,   take       dispose
 *              or signal handler)
 *   put        yes                         yes        yes
 *   take       yes                         no         no
 *
 * put (trace_point.h, ring_put.h): async-signal-safe, allocates nothing, keeps errno, takes no lock, is no cancellation point.
 * take (ring_take.h) and dispose are the controller's, which lets one thread at a time do them; they do not block.
 */
#ifndef PX_BUFFER_H
#define PX_BUFFER_H

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

#endif
