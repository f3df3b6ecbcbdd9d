/* SPDX-License-Identifier: MIT */
/* drain.c - one pass: finds the chunks that can go to disk, writes them in order, and frees them. */
/*
 * The order within a thread is the order of chunk serials. A chunk must not be written before a chunk with data and a lower
 * serial. The first look at all chunk states finds, for each thread, the highest serial to drain. A chunk with data and a lower
 * serial was OWNED or FULL at that moment, and stays so until this collector frees it. So the second look finds all these
 * chunks, and takes no chunk with a higher serial.
 *
 * A signal handler that interrupts a writer leaves a hole until it returns. A handler that ends in siglongjmp() never returns:
 * it leaves the hole for good, and its thread lives on. So the collector gives up a hole that stays open while its thread has
 * gone on to other chunks. It drains the slots behind the hole, and counts the missing event as lost. The writer may still
 * live and write there some day. So other threads do not get this chunk until the thread ends, unless there are too many such
 * chunks.
 */
#include "collector.h"

#include <stdlib.h>
#include <string.h>

#define HOLE_PATIENCE_NS UINT64_C(500000000)
#define WAKE_AT_ONCE 64u /* chunks */

/* ------------------------------------------------------------ chunks that are ready */

/* Is this chunk on disk, and kept only from other threads? */
static bool is_kept(const struct ptt_collector *c, uint32_t chunk, uint32_t thread)
{
	return c->note[chunk].kept && c->note[chunk].serial == serial_of(c, chunk) && !c->stream[thread].ended &&
	       !c->final;
}

/* Has the thread written to its OWNED chunk? Most threads are idle most of the time. */
static bool has_news(const struct ptt_collector *c, uint32_t chunk)
{
	const struct chunk_note *note = &c->note[chunk];
	uint32_t at = note->serial == serial_of(c, chunk) ? note->drained : PTT_CHUNK_HEAD;

	if (at >= c->head.chunk_size)
		return false;
	/* relaxed: only a hint; run_scan() loads with acquire */
	return __atomic_load_n((uint64_t *)((char *)chunk_at(c, chunk) + at), __ATOMIC_RELAXED) != 0;
}

static void look(struct ptt_collector *c, bool partly)
{
	uint32_t free_chunks = 0, reserve = 0, reserve_there = 0, absent = 0;

	/* Clear only the entries of the last look: most recordings have few threads, and most looks find nothing. */
	memset(c->wanted, 0, c->looked * sizeof(*c->wanted));
	memset(c->full, 0, c->looked * sizeof(*c->full));
	c->looked = 0;
	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		uint32_t state = state_of(c, i), thread;
		uint64_t serial;

		reserve_there += is_reserved(c, i) && state != PTT_CHUNK_ABSENT;
		/* ABSENT chunks will come soon: they count as free */
		if (state == PTT_CHUNK_FREE || state == PTT_CHUNK_ABSENT) {
			free_chunks++;
			reserve += is_reserved(c, i) && state == PTT_CHUNK_FREE;
			absent += state == PTT_CHUNK_ABSENT;
			continue;
		}
		thread = PTT_CHUNK_THREAD(state);
		if (!holds_data(state) || thread >= c->head.thread_count || is_kept(c, i, thread))
			continue;
		if (thread >= c->looked)
			c->looked = thread + 1;
		if (PTT_CHUNK_STATUS(state) == PTT_CHUNK_FULL)
			c->full[thread]++;
		else if (!c->stream[thread].ended && !c->final && !(partly && has_news(c, i)))
			continue;
		serial = serial_of(c, i);
		if (state_of(c, i) == state && c->wanted[thread] <= serial)
			c->wanted[thread] = serial + 1;
	}
	c->stats.free_chunks = free_chunks;
	if (!c->prompt && be_prompt(c, 0)) {
		c->prompt = true;
		grow_to_the_end(c);
	}
	c->room = reserve < reserve_there ? 0 : free_chunks - reserve;
	if (absent && free_chunks - reserve - absent < (c->head.chunk_count - reserve_there - absent) / 2)
		grow_more(c);
}

static bool worth_it(const struct ptt_collector *c, uint32_t thread, bool everything)
{
	return everything || c->stream[thread].ended || c->final ||
	       c->full[thread] * c->head.chunk_size >= PACKET_SIZE_WANTED;
}

static int by_thread_and_serial(const void *a, const void *b)
{
	const struct ready *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Put the chunks to drain into c->ready, in order. Return: number of chunks. */
static uint32_t gather(struct ptt_collector *c, bool everything)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		uint32_t state = state_of(c, i), thread = PTT_CHUNK_THREAD(state);
		uint64_t serial;

		if (!holds_data(state) || thread >= c->head.thread_count || !c->wanted[thread] ||
		    !worth_it(c, thread, everything) || is_kept(c, i, thread))
			continue;
		serial = serial_of(c, i);
		if (serial >= c->wanted[thread] || state_of(c, i) != state)
			continue;
		c->ready[n++] = (struct ready){serial, thread, i};
	}
	qsort(c->ready, n, sizeof(*c->ready), by_thread_and_serial);
	return n;
}

/* -------------------------------------------------------------- one thread */

/* The offset of the first slot of a chunk that is not on disk. */
static uint32_t drained_to(struct ptt_collector *c, const struct ready *r)
{
	const struct stream *s = &c->stream[r->thread];
	const struct chunk_note *note = &c->note[r->chunk];

	if (note->serial == r->serial)
		return note->drained;
	/*
	 * After a recovery, the stream may know this chunk, but its note does not. If chunk_end is 0, the file has no packet, or
	 * empty packets only: the collector was killed before it wrote the first events.
	 */
	if (s->checked && s->chunk_end && r->serial <= s->chunk_serial)
		return r->serial == s->chunk_serial ? s->chunk_end : c->head.chunk_size;
	return PTT_CHUNK_HEAD;
}

/* Is a slot missing for so long, in a chunk that its thread has left, that the collector gives it up? */
static bool is_given_up(struct ptt_collector *c, const struct ready *r)
{
	struct chunk_note *note = &c->note[r->chunk];

	if (note->hole_serial != r->serial || !note->hole_ns) {
		note->hole_serial = r->serial;
		note->hole_ns = ptt_clock_monotonic_ns();
		return false;
	}
	return ptt_clock_monotonic_ns() - note->hole_ns >= HOLE_PATIENCE_NS;
}

/* The whole chunk is on disk, or in the current packet: free it, or keep it if it has holes. */
static void chunk_is_drained(struct ptt_collector *c, const struct ready *r, uint32_t dirty_end, bool holes)
{
	struct chunk_note *note = &c->note[r->chunk];

	/* nobody will write to most kept chunks: keep at most a quarter of all chunks */
	if (!holes || c->kept >= c->head.chunk_count / 4) {
		packet_chunk_done(c, r->thread, r->chunk, dirty_end);
		return;
	}
	c->kept += !note->kept;
	note->kept = true;
	note->serial = r->serial;
	note->drained = c->head.chunk_size;
}

/*
 * Add the new slots of a chunk to the packet.
 * @dead: its thread has ended: holes are final
 * @moved_on: its thread has written to later chunks
 * Return: false if later chunks of this thread have to wait for missing slots in this chunk.
 */
static bool drain_chunk(struct ptt_collector *c, const struct ready *r, bool dead, bool moved_on)
{
	const struct ptt_chunk *chunk = chunk_at(c, r->chunk);
	uint32_t size = c->head.chunk_size, at = drained_to(c, r), state;
	struct run run = {.how = RUN_FINISHED, .dirty_end = size};
	bool holes = false;

	while (at < size) {
		run_scan(chunk, size, at, &run);
		/* An empty chunk may become FREE meanwhile, and then belong to another thread. */
		state = state_of(c, r->chunk);
		if (!holds_data(state) || PTT_CHUNK_THREAD(state) != r->thread || serial_of(c, r->chunk) != r->serial)
			return true;
		if (run.end > run.begin)
			packet_add(c, r->thread, r->chunk, &run);
		at = run.end;
		if (run.how == RUN_FINISHED)
			break;
		if (!dead) {
			if (!(moved_on || PTT_CHUNK_STATUS(state) == PTT_CHUNK_FULL) || !is_given_up(c, r))
				break;
			holes = true;
			c->stream[r->thread].discarded_base++;
			c->stats.lost_full++;
		}
		at = run_skip_hole(chunk, size, at);
		if (at >= size)
			run.how = RUN_FINISHED;
	}
	if (run.how == RUN_OPEN && !dead)
		return false;
	/* A chunk that a live thread still owns becomes FULL when the signal handler that moved on has returned. */
	if (dead || PTT_CHUNK_STATUS(state_of(c, r->chunk)) == PTT_CHUNK_FULL)
		chunk_is_drained(c, r, dead || holes ? size : run.dirty_end, holes);
	else if (moved_on && is_given_up(c, r))
		chunk_is_drained(c, r, size, true); /* the chunk will not become FULL either */
	return true;
}

static void drain_thread(struct ptt_collector *c, const struct ready *r, uint32_t n)
{
	uint32_t thread = r->thread;
	bool dead = c->stream[thread].ended || c->final;

	packet_begin(c, thread);
	for (uint32_t i = 0; i < n; i++)
		if (!drain_chunk(c, &r[i], dead, i + 1 < n))
			break;
	packet_write(c, thread);
}

void drain(struct ptt_collector *c, uint32_t flags)
{
	bool everything = flags & PTT_PASS_FLUSH, waited;
	uint32_t n, i, end, freed_before = c->stats.freed_chunks, freed = freed_before;

	look(c, everything);
	/* If room is short, small packets are better than writers that wait. */
	waited = __atomic_load_n(&c->segment->waiters, __ATOMIC_RELAXED) != 0;
	if (waited || c->room < c->head.chunk_count / 4)
		everything = true;
	n = gather(c, everything);
	for (i = 0; i < n; i = end) {
		for (end = i + 1; end < n && c->ready[end].thread == c->ready[i].thread;)
			end++;
		drain_thread(c, &c->ready[i], end - i);
		/* Wake many writers at once: thousands of single wake-ups would keep us from the next chunk. */
		if (c->stats.freed_chunks - freed >= WAKE_AT_ONCE || (end == n && c->stats.freed_chunks != freed)) {
			wake_writers(c, c->stats.freed_chunks - freed);
			freed = c->stats.freed_chunks;
		}
	}
	c->stats.free_chunks += c->stats.freed_chunks - freed_before;
}
