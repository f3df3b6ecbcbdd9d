/* SPDX-License-Identifier: MIT */
/* watch.c - what the recorder looks at between passes: the doorbell, process entries, the journal of call sites. */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An entry that was reserved and not written for so long belonged to a process that was killed. */
#define SITE_STUCK_NS UINT64_C(2000000000)

int ptt_collector_wait(struct ptt_collector *c, uint32_t timeout_ms)
{
	struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

	if (syscall(SYS_futex, &c->segment->doorbell, FUTEX_WAIT, c->doorbell_seen, &timeout, NULL, 0) < 0)
		return errno == EINTR ? -EINTR : 0;
	return 0;
}

int ptt_collector_processes(struct ptt_collector *c, uint32_t first, struct ptt_process *processes, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < c->segment->process_count && n < count; i++) {
		/* acquire: pairs with the release of LIVE after the entry was filled in */
		uint32_t state = __atomic_load_n(&c->process[i].state, __ATOMIC_ACQUIRE);

		/* Entries are taken in order and never given back. */
		if (state == PTT_PROCESS_FREE)
			break;
		processes[n] = c->process[i];
		processes[n++].state = state;
		if (i >= c->process_high)
			c->process_high = i + 1;
	}
	return (int)n;
}

/* Return: false if the entry at @at has to be waited for. */
static bool site_ready(struct ptt_collector *c, uint64_t at)
{
	/* acquire: pairs with the release of address, after process and id */
	if (__atomic_load_n(&c->site[at % PTT_SITE_JOURNAL].address, __ATOMIC_ACQUIRE))
		return true;
	if (c->site_stuck_at != at || !c->site_stuck_ns) {
		c->site_stuck_at = at;
		c->site_stuck_ns = now_ns();
	}
	return c->final || now_ns() - c->site_stuck_ns > SITE_STUCK_NS;
}

int ptt_collector_sites(struct ptt_collector *c, struct ptt_site *sites, uint32_t count)
{
	struct ptt_segment *seg = c->segment;
	uint64_t head = __atomic_load_n(&seg->site_head, __ATOMIC_ACQUIRE), at = seg->site_tail;
	uint32_t n = 0;

	for (; at != head && n < count && site_ready(c, at); at++) {
		sites[n] = c->site[at % PTT_SITE_JOURNAL];
		if (!sites[n].address)
			sites[n].address = PTT_SITE_VOID;
		n++;
	}
	return (int)n;
}

int ptt_collector_sites_taken(struct ptt_collector *c, uint32_t count)
{
	struct ptt_segment *seg = c->segment;
	uint64_t at = seg->site_tail, end = at + count;

	for (; at != end; at++)
		__atomic_store_n(&c->site[at % PTT_SITE_JOURNAL].address, 0, __ATOMIC_RELAXED);
	/* release: a writer that sees the new tail sees the entries empty */
	__atomic_store_n(&seg->site_tail, end, __ATOMIC_RELEASE);
	return 0;
}
