/* SPDX-License-Identifier: MIT */
/* release.c - gives room back to the program: chunks that are on disk, and a call for the writers that wait for them. */
#include "collector.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void chunk_free(struct ptt_collector *c, uint32_t index, uint32_t dirty_end)
{
	c->kept -= c->note[index].kept;
	c->note[index].kept = false;
	chunk_at(c, index)->dirty_end = dirty_end;
	c->note[index].serial = UINT64_MAX;
	c->stats.freed_chunks++;
	/* release: the next claimant's acquire sees dirty_end, and our reads of the slots are over */
	__atomic_store_n(&c->chunk_state[index], PTT_CHUNK_FREE, __ATOMIC_RELEASE);
}

/* No more than can find a chunk: thousands that wake up and find none would keep all processors busy. */
void wake_writers(struct ptt_collector *c, uint32_t chunks)
{
	struct ptt_segment *seg = c->segment;

	/* seq_cst: a writer adds itself to waiters before it sleeps on the old value of space; one of us sees the other */
	__atomic_fetch_add(&seg->space, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&seg->waiters, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &seg->space, FUTEX_WAKE, chunks < INT_MAX ? chunks : INT_MAX, NULL, NULL, 0);
}

/*
 * Real-time threads do not wait for room. Once there are any, nobody but they may keep the thread @tid of ours, 0 for the
 * calling one, from the processor, as far as the system lets it have precedence; a real-time policy would get in their way.
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
