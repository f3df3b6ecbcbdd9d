/* SPDX-License-Identifier: MIT */
/* bell.h - is anybody collecting, and how to call them. Safe in signal handlers, keeps errno. */
#ifndef PTT_BELL_H
#define PTT_BELL_H

#include <linux/futex.h>
#include <stdbool.h>

#include "../layout/ptt_abi.h"
#include "../platform/raw_syscall.h"

/* ptt_is_collected - does a live process hold the collector's mutex? */
static inline bool ptt_is_collected(const struct ptt_segment *segment)
{
	/* the first word of a robust mutex is its futex: 0 = never held or given up, OWNER_DIED = the kernel says so */
	uint32_t word = __atomic_load_n((const uint32_t *)segment->collector, __ATOMIC_RELAXED);

	return word && !(word & FUTEX_OWNER_DIED);
}

/* ptt_tell_waiters - @chunks chunks are free now. */
static inline void ptt_tell_waiters(struct ptt_segment *segment, int chunks)
{
	/* seq_cst: a writer adds itself to waiters before it sleeps on the old value of space; one of us sees the other */
	__atomic_fetch_add(&segment->space, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&segment->waiters, __ATOMIC_SEQ_CST))
		ptt_raw_futex(&segment->space, FUTEX_WAKE, (uint32_t)chunks, NULL);
}

static inline void ptt_ring_the_bell(struct ptt_segment *segment)
{
	__atomic_fetch_add(&segment->doorbell, 1, __ATOMIC_RELEASE); /* pairs with the collector's futex wait on the word */
	ptt_raw_futex(&segment->doorbell, FUTEX_WAKE, 1, NULL);
}

#endif
