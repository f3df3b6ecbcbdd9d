/* SPDX-License-Identifier: MIT */
/* site.h - numbers of call sites and stacks, which stand in events in place of addresses; ptt_abi.h has the layout. */
/* All functions may run in signal handlers, and no function allocates. ptt_ring_site_slow() and ptt_ring_stack() may wait. */
#ifndef PTT_SITE_H
#define PTT_SITE_H

#include "../writer/writer.h"

#define PTT_SITE_HASH(address) \
	((uint32_t)(((uint64_t)(address) * UINT64_C(0x9E3779B97F4A7C15)) >> 48))

/* ptt_ring_site_slow - id of a call site that is not in the entry of its hash. */
uint32_t ptt_ring_site_slow(uint64_t address) __attribute__((cold, noinline));

/* ptt_ring_forget_sites - a module is being closed: every site must be looked up again before its number is used. */
void ptt_ring_forget_sites(void);

/* ptt_ring_knows_site - is the id of this call site its hash? True for nearly every site. */
static inline bool ptt_ring_knows_site(uint64_t address)
{
	/* relaxed: an entry, once set, only becomes stale and fresh again; entry 0 is no site and holds no address */
	return ptt_local_is64(&ptt_ring.sites[PTT_SITE_HASH(address)], address);
}

static inline uint32_t ptt_ring_site(uint64_t address)
{
	return ptt_ring_knows_site(address) ? PTT_SITE_HASH(address) : ptt_ring_site_slow(address);
}

/*
 * ptt_ring_stack - the number of the calling thread's stack, from the call of a hook outwards
 * @site: return address of that call
 * A handler calls it before it takes the time, from a function with a small frame. Async-signal-safe, takes no lock,
 * allocates nothing; may wait for the collector to empty the journal, as the segment's policy says.
 * Return: PTT_STACK_NONE if no stack is wanted, no stack is found or too many stacks are known. The last two cases are
 * counted. No stack is wanted for a call of another thread.
 */
uint32_t ptt_ring_stack(void *site) __attribute__((visibility("hidden")));

#endif
