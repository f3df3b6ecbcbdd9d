/* SPDX-License-Identifier: MIT */
/* bell.h - does anybody collect, and how to wake the collector. Safe in signal handlers, keeps errno. */
#ifndef PTT_BELL_H
#define PTT_BELL_H

#include <linux/futex.h>
#include <stdbool.h>

#include "../layout/ptt_abi.h"
#include "../platform/clock.h"
#include "../platform/raw_syscall.h"

/* ptt_is_collected - is there a collector process? It may stand still. */
static inline bool ptt_is_collected(const struct ptt_segment *segment)
{
	/* relaxed: the word hands nothing over; the kernel changes it when the collector dies */
	uint32_t word = __atomic_load_n(&segment->collector, __ATOMIC_RELAXED);

	return word && !(word & FUTEX_OWNER_DIED);
}

/* ptt_is_stalled - has a writer waited in vain for the collector, which has given no sign of life since? */
static inline bool ptt_is_stalled(const struct ptt_segment *segment)
{
	/* relaxed, both: a writer that sees it late waits a little longer, or loses an event more */
	return __atomic_load_n(&segment->stalled, __ATOMIC_RELAXED) == __atomic_load_n(&segment->beat, __ATOMIC_RELAXED);
}

/* A waiting writer's view of the collector's beat; all zero at first. */
struct ptt_patience {
	uint32_t beat;
	uint64_t waited_ns; /* ns waited since @beat was first seen */
};

/*
 * ptt_wait_for_collector - sleep on a futex of the collector, and mark the collector as stalled when patience is over
 * @slice: how long to sleep at most
 * Counts at most one slice as waited, because this process may be stopped too. Safe in signal handlers, keeps errno.
 */
static inline void ptt_wait_for_collector(struct ptt_segment *segment, struct ptt_patience *patience, uint32_t *word,
					  uint32_t value, const struct timespec *slice)
{
	/* relaxed: as in ptt_is_stalled() */
	uint32_t beat = __atomic_load_n(&segment->beat, __ATOMIC_RELAXED);
	uint64_t most = (uint64_t)slice->tv_sec * 1000000000 + (uint64_t)slice->tv_nsec, began = ptt_clock_monotonic_ns(), waited;

	if (beat != patience->beat)
		*patience = (struct ptt_patience){.beat = beat};
	ptt_raw_futex(word, FUTEX_WAIT, value, slice);
	waited = ptt_clock_monotonic_ns() - began;
	patience->waited_ns += waited < most ? waited : most;
	if (patience->waited_ns >= (uint64_t)segment->patience_ms * 1000000)
		__atomic_store_n(&segment->stalled, patience->beat, __ATOMIC_RELAXED);
}

/* ptt_ring_the_bell - wake the collector. */
static inline void ptt_ring_the_bell(struct ptt_segment *segment)
{
	__atomic_fetch_add(&segment->doorbell, 1, __ATOMIC_RELEASE); /* pairs with the collector's futex wait on the word */
	ptt_raw_futex(&segment->doorbell, FUTEX_WAKE, 1, NULL);
}

#endif
