/* SPDX-License-Identifier: MIT */
/* chunks.c - scans chunks for runs of committed slots, for holes and times; gives room back to the program. */
/*
 * A slot is committed once its first word is not zero. An event is committed once its first slot is committed: its other slots
 * were written before. So a run never ends within an event.
 */
#include "../collector.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Is a slot with this id the first slot of an event? */
static inline bool begins(uint32_t id)
{
	return id != PTT_ID_MORE && id != PTT_ID_STACK;
}

static inline uint64_t first_word(const struct ptt_chunk *chunk, uint32_t at)
{
	/* acquire: pairs with the writer's release of each first word */
	return __atomic_load_n((const uint64_t *)((const char *)chunk + at), __ATOMIC_ACQUIRE);
}

void run_scan(const struct ptt_chunk *chunk, uint32_t chunk_size, uint32_t begin, struct run *run)
{
	uint32_t at = begin, events = 0;
	uint64_t word = 0;

	for (; at < chunk_size; at += PTT_SLOT_SIZE) {
		uint32_t id;

		/* acquire: pairs with the writer's release of each first word */
		word = __atomic_load_n((const uint64_t *)((const char *)chunk + at), __ATOMIC_ACQUIRE);
		id = word & PTT_ID_MASK;
		if (id == 0 || id == PTT_ID_END)
			break;
		events += begins(id);
	}
	run->begin = begin;
	run->end = at;
	run->events = events;
	if (at >= chunk_size) {
		run->how = RUN_FINISHED;
		run->dirty_end = chunk_size;
	} else if ((word & PTT_ID_MASK) == PTT_ID_END) {
		run->how = RUN_FINISHED;
		run->dirty_end = at + PTT_SLOT_SIZE;
	} else {
		run->how = RUN_OPEN;
		run->dirty_end = at;
	}
}

uint32_t run_skip_hole(const struct ptt_chunk *chunk, uint32_t chunk_size, uint32_t at)
{
	/* Slots that continue an event without a first slot belong to the hole. */
	while (at < chunk_size) {
		uint32_t id = first_word(chunk, at) & PTT_ID_MASK;

		if (id != 0 && begins(id))
			break;
		at += PTT_SLOT_SIZE;
	}
	return at;
}

static uint64_t full_time(const struct ptt_chunk *chunk, uint64_t word)
{
	/* relaxed: constant as long as the chunk belongs to its thread */
	uint64_t t_base = __atomic_load_n(&chunk->t_base, __ATOMIC_RELAXED);

	return t_base + (((word >> PTT_TIME_SHIFT) - t_base) & PTT_TIME_MASK);
}

/*
 * The end of the slots of a live chunk that are committed and not later than @until.
 *
 * A slot that is not written, with an event behind it, is a hole: a signal handler interrupted the writer of the slot. The
 * slot may also have been written since the first look at it. So this function looks at it again after it has seen the event.
 */
uint32_t run_until(const struct ptt_chunk *chunk, uint32_t chunk_size, uint64_t until)
{
	uint32_t at = PTT_CHUNK_HEAD, next;

	while (at < chunk_size) {
		uint64_t word = first_word(chunk, at);
		uint32_t id = word & PTT_ID_MASK;

		if (id == PTT_ID_END)
			return at + PTT_SLOT_SIZE;
		if (id) {
			if (begins(id) && (int64_t)(full_time(chunk, word) - until) > 0)
				return at;
			at += PTT_SLOT_SIZE;
			continue;
		}
		next = run_skip_hole(chunk, chunk_size, at);
		if (next >= chunk_size)
			return at;
		if (!(first_word(chunk, at) & PTT_ID_MASK))
			at = next;
	}
	return chunk_size;
}

void run_times(const struct ptt_chunk *chunk, const struct run *run, uint64_t *first, uint64_t *last)
{
	uint32_t at = run->end - PTT_SLOT_SIZE;

	while (at > run->begin && !begins(first_word(chunk, at) & PTT_ID_MASK))
		at -= PTT_SLOT_SIZE;
	*first = full_time(chunk, first_word(chunk, run->begin));
	*last = full_time(chunk, first_word(chunk, at));
}

/* ------------------------------------------------------------ room for writers */

void chunk_free(struct ptt_collector *c, uint32_t index, uint32_t dirty_end)
{
	c->kept -= c->note[index].kept;
	c->note[index].kept = false;
	chunk_at(c, index)->dirty_end = dirty_end;
	c->note[index].serial = UINT64_MAX;
	c->stats.freed_chunks++;
	/* release: pairs with the acquire of the next owner, which sees dirty_end; our reads of the slots are over */
	__atomic_store_n(&c->chunk_state[index], PTT_CHUNK_FREE, __ATOMIC_RELEASE);
}

/* Wake at most @count writers: thousands of writers that wake up without a chunk or an entry would keep all processors busy. */
void wake_writers(struct ptt_collector *c, uint32_t count)
{
	struct ptt_segment *seg = c->segment;

	/* seq_cst: a writer adds itself to waiters before it sleeps on the old value of space; one side sees the other */
	__atomic_fetch_add(&seg->space, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&seg->waiters, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &seg->space, FUTEX_WAKE, count < INT_MAX ? count : INT_MAX, NULL, NULL, 0);
}

/*
 * Real-time threads do not wait for room. If the program has real-time threads, give our thread @tid (0 = the calling thread) the
 * highest priority of ordinary threads, if the system allows it. A real-time policy would compete with the program's threads.
 * Return: true if there are real-time threads.
 */
bool be_prompt(const struct ptt_collector *c, pid_t tid)
{
	const int least_nice = -20;

	/* relaxed: a flag that hands nothing over */
	if (!__atomic_load_n(&c->segment->real_time, __ATOMIC_RELAXED))
		return false;
	setpriority(PRIO_PROCESS, (id_t)tid, least_nice);
	return true;
}
