/* SPDX-License-Identifier: MIT */
/* snapshot.c - the flight recorder: copies the buffers while threads write to them, and writes the copy as a trace of its own. */
/*
 * The snapshot has a time T, the value of the clock when it began. The copy holds every event up to T that is complete and not
 * overwritten, and no later event. So the copy is a consistent cut. An event that happened before an event of the copy was
 * complete before T, and the copy has it, too. This holds between threads as well: a release is recorded before other threads
 * can take the lock.
 *
 * Writers overwrite the oldest chunks meanwhile, so the newest chunks are copied first. A chunk whose state or serial has
 * changed after the copy is overwritten. Chunks of a thread that are older than a missing chunk are left out, so the events of
 * each thread have no gap.
 *
 * The copy is a private segment without writers. The code for the end of a recording drains it.
 */
#include "collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A chunk with data when the snapshot began. */
struct seen {
	uint64_t t_base;
	uint64_t serial;
	uint32_t state;
	uint32_t chunk;
	bool overwritten;
};

/* Copy words that others may change meanwhile. @size: a multiple of 8 */
static void copy_words(void *to, const void *from, uint64_t size)
{
	const uint64_t *source = from;
	uint64_t *target = to;

	/* relaxed: the caller looks afterwards whether the copy is good, or each word stands for itself */
	for (uint64_t i = 0; i < size / sizeof(*target); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* OWNED chunks first: they hold the newest events of their threads. Then from the newest to the oldest. */
static int newest_first(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	bool x_owned = PTT_CHUNK_STATUS(x->state) == PTT_CHUNK_OWNED, y_owned = PTT_CHUNK_STATUS(y->state) == PTT_CHUNK_OWNED;

	if (x_owned != y_owned)
		return x_owned ? -1 : 1;
	if (x->t_base != y->t_base)
		return x->t_base > y->t_base ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* Find the chunks with data. Return: number of chunks. */
static uint32_t find_chunks(const struct ptt_collector *c, struct seen *seen)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		const struct ptt_chunk *chunk = chunk_at(c, i);
		uint32_t state = state_of(c, i);

		if (!holds_data(state) || PTT_CHUNK_THREAD(state) >= c->head.thread_count)
			continue;
		seen[n++] = (struct seen){
			/* relaxed: decides the order only */
			.t_base = __atomic_load_n(&chunk->t_base, __ATOMIC_RELAXED),
			.serial = serial_of(c, i),
			.state = state,
			.chunk = i,
		};
	}
	qsort(seen, n, sizeof(*seen), newest_first);
	return n;
}

/* Copy the events of a chunk up to time @until. Return: false if the chunk was overwritten meanwhile. */
static bool copy_chunk(const struct ptt_collector *c, struct ptt_collector *copy, const struct seen *seen, uint64_t until)
{
	const struct ptt_chunk *chunk = chunk_at(c, seen->chunk);
	uint32_t end = run_until(chunk, c->head.chunk_size, until);

	copy_words(chunk_at(copy, seen->chunk), chunk, end);
	if (!is_same_life(c, seen->chunk, seen->state, seen->serial))
		return false;
	if (end > PTT_CHUNK_HEAD)
		copy->chunk_state[seen->chunk] = seen->state | PTT_CHUNK_FULL;
	return true;
}

static int by_thread_newest_first(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	uint32_t x_thread = PTT_CHUNK_THREAD(x->state), y_thread = PTT_CHUNK_THREAD(y->state);

	if (x_thread != y_thread)
		return x_thread < y_thread ? -1 : 1;
	return x->serial > y->serial ? -1 : x->serial < y->serial;
}

/*
 * Leave out the chunks of a thread that are older than a missing chunk. A serial may also be missing because the thread found
 * no room: then events are lost there, and the older events are no use either.
 * Return: number of chunks that are not in the copy.
 */
static uint32_t leave_gaps_out(struct ptt_collector *copy, struct seen *seen, uint32_t n)
{
	uint32_t missing = 0, i;
	bool whole = true;

	qsort(seen, n, sizeof(*seen), by_thread_newest_first);
	for (i = 0; i < n; i++) {
		if (!i || PTT_CHUNK_THREAD(seen[i].state) != PTT_CHUNK_THREAD(seen[i - 1].state))
			whole = true;
		else if (seen[i].serial + 1 != seen[i - 1].serial)
			whole = false;
		whole &= !seen[i].overwritten;
		if (whole)
			continue;
		copy->chunk_state[seen[i].chunk] = PTT_CHUNK_FREE;
		missing++;
	}
	return missing;
}

/* The counts of the recording so far, without counts of events and packets. */
static void copy_stats(const struct ptt_collector *c, struct ptt_collector *copy)
{
	copy->stats = c->stats;
	copy->stats.events = copy->stats.packets = copy->stats.bytes = copy->stats.threads = 0;
	copy->stats.lost_write = copy->stats.freed_chunks = 0;
	copy->stats.write_error = 0;
	copy->lost_threads = c->lost_threads;
}

static int copy_buffers(struct ptt_collector *c, struct ptt_collector *copy, uint64_t until, struct ptt_message *message)
{
	struct seen *seen = calloc(c->head.chunk_count, sizeof(*seen));
	uint32_t n, i;

	if (!seen)
		return fail(message, -ENOMEM, "cannot copy the buffers");
	n = find_chunks(c, seen);
	for (i = 0; i < n; i++)
		seen[i].overwritten = !copy_chunk(c, copy, &seen[i], until);
	copy->segment->overwritten += (uint64_t)leave_gaps_out(copy, seen, n) * (c->head.chunk_size - PTT_CHUNK_HEAD);
	free(seen);
	return 0;
}

static void copy_entries(const struct ptt_collector *c, struct ptt_collector *copy)
{
	uint32_t threads, i;

	/* the head has words that writers change: doorbell, waiters and others mean nothing in the copy */
	copy_words(copy->segment, c->segment, sizeof(*c->segment));
	copy->segment->waiters = copy->segment->real_time = copy->segment->collector = 0;
	threads = threads_high(copy);
	copy_words(copy->thread, c->thread, threads * sizeof(*c->thread));
	/* relaxed: an entry stands for itself */
	for (i = 0; i < threads; i++)
		copy->thread_owner[i] = __atomic_load_n(&c->thread_owner[i], __ATOMIC_RELAXED);
	copy_words(copy->process, c->process, process_high(copy) * sizeof(*c->process));
}

/* A collector without writers, whose segment is private memory. */
static struct ptt_collector *begin_copy(struct ptt_collector *c, const char *trace, const uint8_t *uuid,
					struct ptt_message *message, int *err)
{
	struct ptt_collector *copy = calloc(1, sizeof(*copy));
	void *base;

	*err = -ENOMEM;
	if (!copy)
		return NULL;
	copy->head = c->head;
	memcpy(copy->head.uuid, uuid, sizeof(copy->head.uuid));
	copy->packet_max = PACKET_SIZE_MAX - sizeof(struct ptt_compact);
	copy->trace_fd = open(trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (copy->trace_fd < 0) {
		*err = fail(message, -errno, "%s", trace);
		return copy;
	}
	base = mmap(NULL, c->head.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		*err = fail(message, -errno, "cannot copy the buffers");
		return copy;
	}
	copy->base = base;
	copy->segment = base;
	*err = collector_allocate(copy, message);
	if (!*err && c->coding)
		*err = coding_init(copy, message);
	return copy;
}

static void write_copy(struct ptt_collector *copy, struct ptt_collector_stats *stats)
{
	copy->final = true;
	drain(copy, PTT_PASS_FLUSH);
	for (uint32_t i = 0; i < threads_high(copy); i++)
		if (copy->thread_owner[i])
			packet_write_losses(copy, i);
	streams_close(copy);
	threads_sum_losses(copy);
	copy->stats.overwritten = copy->segment->overwritten;
	copy->stats.lost_sites = copy->segment->site_lost;
	copy->stats.without_site = copy->segment->without_site;
	copy->stats.without_stack = copy->segment->without_stack;
	copy->stats.chunks = copy->head.chunk_count;
	*stats = copy->stats;
}

int ptt_collector_snapshot(struct ptt_collector *c, const char *trace, const uint8_t *uuid,
			   struct ptt_collector_stats *stats, struct ptt_message *message)
{
	struct ptt_collector *copy;
	int err;

	if (c->shared || c->head.policy != PTT_POLICY_LOOP)
		return fail(message, -EINVAL, "only a flight recorder makes snapshots");
	copy = begin_copy(c, trace, uuid, message, &err);
	if (!copy)
		return fail(message, err, "cannot copy the buffers");
	if (!err) {
		/* before the entries are copied: a thread that gets its entry later has no event up to this time */
		uint64_t until = ptt_clock_fenced(c->head.clock);

		copy_stats(c, copy);
		copy_entries(c, copy);
		err = copy_buffers(c, copy, until, message);
	}
	if (!err)
		write_copy(copy, stats);
	ptt_collector_destroy(copy);
	return err;
}
