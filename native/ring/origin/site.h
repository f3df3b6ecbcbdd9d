/* SPDX-License-Identifier: MIT */
/* site.h - the numbers of call sites and stacks, which go into events instead of addresses; ptt_abi.h says how both are tied. */
/* All functions may run in signal handlers, and none allocates. ptt_ring_site_slow() and ptt_ring_stack() may wait. */
#ifndef PTT_SITE_H
#define PTT_SITE_H

#include "../writer/writer.h"

#define PTT_SITE_HASH(address) \
	((uint32_t)(((uint64_t)(address) * UINT64_C(0x9E3779B97F4A7C15)) >> 48))

/* ptt_ring_site_slow - id of a call site that is not where its hash points. */
uint32_t ptt_ring_site_slow(uint64_t address) __attribute__((cold, noinline));

/* ptt_ring_forget_sites - a module is being closed: what the number of each site stands for is to be looked at again. */
void ptt_ring_forget_sites(void);

/* ptt_ring_knows_site - is the id of this call site simply its hash? So it is for nearly every site. */
static inline bool ptt_ring_knows_site(uint64_t address)
{
	/* relaxed: an entry, once set, only becomes stale and fresh again; entry 0 is no site, and holds no address */
	return ptt_local_is64(&ptt_ring.sites[PTT_SITE_HASH(address)], address);
}

static inline uint32_t ptt_ring_site(uint64_t address)
{
	return ptt_ring_knows_site(address) ? PTT_SITE_HASH(address) : ptt_ring_site_slow(address);
}

/*
 * ptt_ring_stack - the stack that the calling thread has now, from the call of a hook on
 * @site: where that call returns to
 *
 * To be called by a handler before it takes the time, not from a function with a large frame. Async-signal-safe, takes no
 * lock, allocates nothing; may wait for the collector to empty the journal, as the
 * segment's policy says.
 * Return: PTT_STACK_NONE if none is wanted or found, or too many are known; in the latter cases it is counted. None is
 *	   wanted of a call that another thread has made.
 */
uint32_t ptt_ring_stack(void *site) __attribute__((visibility("hidden")));

#endif
