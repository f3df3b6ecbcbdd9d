/* SPDX-License-Identifier: MIT */
/* site.h - the number of a call site, which goes into its events instead of the address; ptt_abi.h says how both are tied. */
/* All of it may run in signal handlers, and neither blocks nor allocates. */
#ifndef PTT_SITE_H
#define PTT_SITE_H

#include "../writer/writer.h"

#define PTT_SITE_HASH(address) \
	((uint32_t)(((uint64_t)(address) * UINT64_C(0x9E3779B97F4A7C15)) >> 48))

/* ptt_ring_site_slow - id of a call site that is not where its hash points. */
uint32_t ptt_ring_site_slow(uint64_t address) __attribute__((cold, noinline));

/* ptt_ring_forget_sites - a module is being closed: what the number of each site stands for is to be looked at again. */
void ptt_ring_forget_sites(void);

/*
 * ptt_ring_insert - put @value into an empty entry of a table that is private to the process, and announce what it stands for
 * @found: what is there instead, where somebody else was faster; 0 where the journal is full
 * May wait for the collector to empty the journal, as the segment's policy says.
 */
bool ptt_ring_insert(uint64_t *entry, uint64_t value, uint64_t address, uint64_t ids, uint64_t *found);

/* ptt_ring_is_strange_child - is this a child that came about behind the tracer's back? It must not write as its parent. */
bool ptt_ring_is_strange_child(void);

/* ptt_ring_knows_site - is the id of this call site simply its hash? That of nearly every site is. */
static inline bool ptt_ring_knows_site(uint64_t address)
{
	/* relaxed: an entry, once set, only becomes stale and fresh again; entry 0 is no site, and holds no address */
	return ptt_local_is64(&ptt_ring.sites[PTT_SITE_HASH(address)], address);
}

static inline uint32_t ptt_ring_site(uint64_t address)
{
	return ptt_ring_knows_site(address) ? PTT_SITE_HASH(address) : ptt_ring_site_slow(address);
}

#endif
