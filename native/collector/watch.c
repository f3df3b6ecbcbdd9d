/* SPDX-License-Identifier: MIT */
/* watch.c - between passes: waits for the doorbell, and reads the journal of call sites. */
#include "collector.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* If an entry is reserved and not written for so long, its process was killed. */
#define SITE_STUCK_NS UINT64_C(2000000000)

/* While writers wait for room, the next pass comes soon: it may take chunks back from idle threads. */
#define WAIT_MS_SHORT 10u

/* The kernel's ring buffers for context switches do not fill up sooner. */
#define SCHED_MS 20u

/* Return: 0 if a writer has rung the doorbell, -ETIMEDOUT or -EINTR. */
static int listen_for(const struct ptt_collector *c, uint32_t timeout_ms)
{
	struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

	if (syscall(SYS_futex, &c->segment->doorbell, FUTEX_WAIT, c->doorbell_seen, &timeout, NULL, 0) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

int ptt_collector_wait(struct ptt_collector *c, uint32_t timeout_ms)
{
	int err = -ETIMEDOUT;

	/* relaxed: a writer that begins to wait rings the doorbell, unless another writer waits already */
	if (timeout_ms > WAIT_MS_SHORT && __atomic_load_n(&c->segment->waiters, __ATOMIC_RELAXED))
		timeout_ms = WAIT_MS_SHORT;
	for (; c->sched && err == -ETIMEDOUT && timeout_ms > SCHED_MS; timeout_ms -= SCHED_MS) {
		err = listen_for(c, SCHED_MS);
		sched_read(c);
	}
	if (err == -ETIMEDOUT)
		err = listen_for(c, timeout_ms);
	return err == -EINTR ? err : 0;
}

/* Read the entry at @at into @site. Return: true if the thread that reserved the entry has written all of it. */
static bool read_site(const struct ptt_collector *c, uint64_t at, struct ptt_site *site)
{
	const struct ptt_site_entry *entry = &c->site[at % PTT_SITE_JOURNAL];
	/* acquire: pairs with the release of address, after process and ids */
	uint64_t address = __atomic_load_n(&entry->address, __ATOMIC_ACQUIRE);
	uint64_t ids = __atomic_load_n(&entry->ids, __ATOMIC_RELAXED);
	uint32_t process = __atomic_load_n(&entry->process, __ATOMIC_RELAXED), lap = PTT_SITE_LAP(at);

	*site = (struct ptt_site){
		.address = address & PTT_OBJECT_MASK,
		.process = process_image(c, process & 0xffff),
		.id = ids & 0xffffff,
		.parent = ids >> 24 & 0xffffff,
	};
	if (!site->address)
		site->address = PTT_SITE_VOID;
	return address >> PTT_SITE_LAP_SHIFT == lap && ids >> PTT_SITE_LAP_SHIFT == lap &&
	       process >> PTT_SITE_LAP_SHIFT_SMALL == lap;
}

/* Has the collector waited long enough for the entry at @at? */
static bool is_stuck(struct ptt_collector *c, uint64_t at)
{
	if (c->site_stuck_at != at || !c->site_stuck_ns) {
		c->site_stuck_at = at;
		c->site_stuck_ns = ptt_clock_monotonic_ns();
	}
	return c->final || ptt_clock_monotonic_ns() - c->site_stuck_ns > SITE_STUCK_NS;
}

int ptt_collector_sites(struct ptt_collector *c, struct ptt_site *sites, uint32_t count)
{
	struct ptt_segment *seg = c->segment;
	/* acquire without a partner: each entry says itself whether it is written */
	uint64_t head = __atomic_load_n(&seg->site_head, __ATOMIC_ACQUIRE), at = seg->site_tail;
	uint32_t n = 0;

	if (head - at > PTT_SITE_JOURNAL) {
		/* writers never reserve so many: a wild store of the program changed it; relaxed: a count */
		__atomic_fetch_add(&seg->site_lost, 1, __ATOMIC_RELAXED);
		/* release: as in ptt_collector_sites_taken() */
		__atomic_store_n(&seg->site_tail, head, __ATOMIC_RELEASE);
		return 0;
	}
	for (; at != head && n < count; at++, n++) {
		if (read_site(c, at, &sites[n]))
			continue;
		if (!is_stuck(c, at))
			break;
		/* its writer was killed or stopped; or a stopped writer continued late and overwrote the entry */
		sites[n] = (struct ptt_site){.address = PTT_SITE_VOID};
		if (at >= c->site_lost_below) {
			c->site_lost_below = at + 1;
			__atomic_fetch_add(&seg->site_lost, 1, __ATOMIC_RELAXED);
		}
	}
	return (int)n;
}

int ptt_collector_sites_taken(struct ptt_collector *c, uint32_t count)
{
	/* release: a writer that sees the new tail may overwrite the entries: our reads are over */
	__atomic_fetch_add(&c->segment->site_tail, count, __ATOMIC_RELEASE);
	return 0;
}
