/* SPDX-License-Identifier: MIT */
/* revoke.c - takes chunks back from idle threads when room is short. */
/*
 * A thread that has written one event and sleeps holds a whole chunk. The protocol is described in ptt_abi.h: the chunk is
 * asked for, a barrier on all processors makes sure that either the thread sees the question or we see what it reserved,
 * and only a chunk whose reserved slots are all written is taken.
 */
#include "collector.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REVOKE_PERIOD_NS UINT64_C(20000000)

/* The quick one interrupts those processors that run a process which has asked for it; the other one waits for all to switch. */
static void barrier_everywhere(const struct ptt_collector *c)
{
	const struct timespec while_buffers_empty = {.tv_nsec = 5 * 1000 * 1000};

	/* relaxed: set before its process owned a chunk, and read after the acquire that found the chunk owned */
	if (!__atomic_load_n(&c->segment->slow_barrier, __ATOMIC_RELAXED) &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
		return;
	/* Kernels without it, or with processors that are shielded from it: no store stays in a buffer for this long. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&while_buffers_empty, NULL);
}

/*
 * Find threads that have not moved since the last look.
 * @fresh: how many others have chunks; they are looked at again
 * Return: how many: c->asked.
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
		/* relaxed, as revoke is: only hints of which thread to ask; take() looks properly */
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

/* Ask the first @count threads in c->asked for their chunks. Return: how many can be asked, and are the first now. */
static uint32_t ask(struct ptt_collector *c, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t thread = c->asked[i], none = __atomic_load_n(&c->thread[thread].revoke, __ATOMIC_RELAXED);

		if (PTT_REVOKE_STATE(none) != PTT_REVOKE_NONE)
			continue;
		/* acq_rel: the partner is the writer's settle_revoke() */
		if (__atomic_compare_exchange_n(&c->thread[thread].revoke, &none,
						PTT_REVOKE_WORD(PTT_REVOKE_ASKED,
								PTT_HEAD_CHANGES(c->stream[thread].idle_head)),
						false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			c->asked[n++] = thread;
	}
	return n;
}

/* Is everything below @head in its chunk committed? */
static bool all_written(const struct ptt_collector *c, uint64_t head)
{
	uint32_t index = chunk_of_head(c, head), size = c->head.chunk_size;
	uint32_t end = (uint32_t)((head & PTT_HEAD_OFFSET_MASK) - c->head.chunk_offset - (uint64_t)index * size);
	struct run run;

	run_scan(chunk_at(c, index), size, PTT_CHUNK_HEAD, &run);
	return run.end >= end || run.how == RUN_FINISHED;
}

/*
 * A chunk that was taken is from here on a full one like any other: it ends where its last owner's head was, and
 * whatever that owner reserves above is void.
 */
static void make_full(struct ptt_collector *c, uint32_t index, uint32_t owned, uint64_t head)
{
	uint64_t offset = head & PTT_HEAD_OFFSET_MASK;

	/* its owner, which has settled the matter already, may have marked it; or it was full, and its owner has moved on */
	if (PTT_CHUNK_STATUS(state_of(c, index)) == PTT_CHUNK_FULL && !(state_of(c, index) & PTT_CHUNK_TAKEN))
		return;
	if (offset % c->head.chunk_size)
		/* release: as the writer would; pairs with the acquire of run_scan() */
		__atomic_store_n((uint64_t *)(c->base + offset), PTT_ID_END, __ATOMIC_RELEASE);
	/* acq_rel: pairs with the owner's release of OWNED and its acquire in settle_revoke() */
	__atomic_compare_exchange_n(&c->chunk_state[index], &owned, owned | PTT_CHUNK_FULL | PTT_CHUNK_TAKEN, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Take the chunk of @thread if it still can be. Return: true if it is ours now. */
static bool take(struct ptt_collector *c, uint32_t thread)
{
	struct ptt_thread *t = &c->thread[thread];
	/* acquire, and acq_rel below: the partner is the writer's settle_revoke() */
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

	/* relaxed: only a hint; a thread that begins to wait now is seen in the next pass */
	waited = __atomic_load_n(&c->segment->waiters, __ATOMIC_RELAXED) != 0;
	if (c->room >= c->head.chunk_count / 2 && !waited)
		return;
	if (grow_is_on(c))
		return; /* that is quicker */
	if (now_ns() - c->revoked_ns < REVOKE_PERIOD_NS)
		return;
	c->revoked_ns = now_ns();
	n = find_idle(c, &fresh);
	/* Where most have moved of late, there is more to take in a moment, for the price of the same barrier. */
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
