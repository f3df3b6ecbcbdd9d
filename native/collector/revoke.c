/* SPDX-License-Identifier: MIT */
/* revoke.c - takes chunks back from idle threads when room is short. */
/*
 * A thread that has written one event and sleeps holds a whole chunk. ptt_abi.h describes the protocol. The collector asks for
 * the chunk. After a barrier on all processors, either the thread sees the question, or we see its reservation. The collector
 * takes a chunk only if all reserved slots are written.
 */
#include "collector.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REVOKE_PERIOD_NS UINT64_C(20000000)

/* The expedited barrier interrupts only processors that run registered processes. The global barrier waits for all processors. */
static void barrier_everywhere(const struct ptt_collector *c)
{
	const struct timespec while_buffers_empty = {.tv_nsec = 5 * 1000 * 1000};

	/* relaxed: a process stores it before it owns a chunk; we load it after the acquire that found the chunk owned */
	if (!__atomic_load_n(&c->segment->slow_barrier, __ATOMIC_RELAXED) &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
		return;
	/* Some kernels have no such barrier, or shield processors from it: no store stays in a buffer for this long. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&while_buffers_empty, NULL);
}

/*
 * Put threads that have not written since the last look into c->asked.
 * @fresh: number of other threads with chunks; the next look checks these threads again
 * Return: number of threads in c->asked.
 */
static uint32_t find_idle(struct ptt_collector *c, uint32_t *fresh)
{
	uint32_t n = 0;

	*fresh = 0;
	for (uint32_t i = 0; i < c->head.chunk_count; i++) {
		uint32_t state = state_of(c, i), thread = PTT_CHUNK_THREAD(state);
		uint64_t head;

		if (PTT_CHUNK_STATUS(state) != PTT_CHUNK_OWNED || thread >= c->head.thread_count)
			continue;
		/* relaxed, and so is the load of revoke: hints for the choice of threads; take() loads with acquire */
		head = __atomic_load_n(&c->thread[thread].head, __ATOMIC_RELAXED);
		if (chunk_of_head(c, head) != i)
			continue;
		if (c->stream[thread].idle_head == head) {
			c->asked[n++] = thread;
		} else {
			c->stream[thread].idle_head = head;
			++*fresh;
		}
	}
	return n;
}

/* Ask the first @count threads in c->asked. Return: number of threads that were asked; they come first in c->asked now. */
static uint32_t ask(struct ptt_collector *c, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t thread = c->asked[i], none = __atomic_load_n(&c->thread[thread].revoke, __ATOMIC_RELAXED);

		if (PTT_REVOKE_STATE(none) != PTT_REVOKE_NONE)
			continue;
		/* acq_rel: pairs with settle_revoke() of the writer */
		if (__atomic_compare_exchange_n(&c->thread[thread].revoke, &none,
						PTT_REVOKE_WORD(PTT_REVOKE_ASKED,
								PTT_HEAD_CHANGES(c->stream[thread].idle_head)),
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			c->asked[n++] = thread;
	}
	return n;
}

/* Are all slots below @head in its chunk committed? */
static bool all_written(const struct ptt_collector *c, uint64_t head)
{
	uint32_t index = chunk_of_head(c, head), size = c->head.chunk_size;
	uint32_t end = (uint32_t)((head & PTT_HEAD_OFFSET_MASK) - c->head.chunk_offset - (uint64_t)index * size);
	struct run run;

	run_scan(chunk_at(c, index), size, PTT_CHUNK_HEAD, &run);
	return run.end >= end || run.how == RUN_FINISHED;
}

/*
 * Make a taken chunk FULL. It ends at the head of its last owner, and later reservations of that owner in it are void.
 */
static void make_full(struct ptt_collector *c, uint32_t index, uint32_t owned, uint64_t head)
{
	uint64_t offset = head & PTT_HEAD_OFFSET_MASK;

	/* the owner may have settled the revocation and marked the chunk; or the chunk was full, and the owner has moved on */
	if (PTT_CHUNK_STATUS(state_of(c, index)) == PTT_CHUNK_FULL && !(state_of(c, index) & PTT_CHUNK_TAKEN))
		return;
	if (offset % c->head.chunk_size)
		/* release, as a writer does; pairs with the acquire of run_scan() */
		__atomic_store_n((uint64_t *)(c->base + offset), PTT_ID_END, __ATOMIC_RELEASE);
	/* acq_rel: pairs with the owner's release of OWNED and its acquire in settle_revoke() */
	__atomic_compare_exchange_n(&c->chunk_state[index], &owned, owned | PTT_CHUNK_FULL | PTT_CHUNK_TAKEN, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Take the chunk of @thread, if the thread is still idle. Return: true if the chunk is ours now. */
static bool take(struct ptt_collector *c, uint32_t thread)
{
	struct ptt_thread *t = &c->thread[thread];
	/* acquire, and acq_rel below: pairs with settle_revoke() of the writer */
	uint32_t word = __atomic_load_n(&t->revoke, __ATOMIC_ACQUIRE), wanted = word & ~PTT_REVOKE_STATE_MASK;
	uint64_t head = __atomic_load_n(&t->head, __ATOMIC_ACQUIRE);
	uint32_t index = chunk_of_head(c, head), state;

	if (PTT_REVOKE_STATE(word) != PTT_REVOKE_ASKED)
		return false;
	state = index < c->head.chunk_count ? state_of(c, index) : PTT_CHUNK_FREE;
	if (word >> 2 == PTT_HEAD_CHANGES(head) && PTT_CHUNK_STATUS(state) == PTT_CHUNK_OWNED &&
	    PTT_CHUNK_THREAD(state) == thread && all_written(c, head))
		wanted = PTT_REVOKE_WORD(PTT_REVOKE_TAKEN, word >> 2);
	if (!__atomic_compare_exchange_n(&t->revoke, &word, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ||
	    PTT_REVOKE_STATE(wanted) == PTT_REVOKE_NONE)
		return false;
	make_full(c, index, state, head);
	return true;
}

void revoke_idle(struct ptt_collector *c)
{
	uint32_t n, fresh, i;
	bool any = false, waited;

	/* relaxed: only a hint; the next pass sees a thread that begins to wait now */
	waited = __atomic_load_n(&c->segment->waiters, __ATOMIC_RELAXED) != 0;
	if (c->room >= c->head.chunk_count / 2 && !waited)
		return;
	if (grow_is_on(c))
		return; /* new chunks come sooner */
	if (ptt_clock_monotonic_ns() - c->revoked_ns < REVOKE_PERIOD_NS)
		return;
	c->revoked_ns = ptt_clock_monotonic_ns();
	n = find_idle(c, &fresh);
	/* If most threads have written lately, wait: the same barrier will take more chunks in a moment. */
	if (n < fresh / 4 || (c->room >= c->head.chunk_count / 4 && !waited))
		return;
	n = ask(c, n);
	if (!n)
		return;
	barrier_everywhere(c);
	for (i = 0; i < n; i++)
		any |= take(c, c->asked[i]);
	if (any)
		drain(c, PTT_PASS_FLUSH);
}
