/* SPDX-License-Identifier: MIT */
/* site.c - numbers a new call site and announces it. */
#include "site.h"

#include "session.h"

static void announce_site(uint64_t at, uint64_t address, uint32_t id)
{
	struct ptt_site *site = ptt_session.site + at % PTT_SITE_JOURNAL;
	uint32_t lap = PTT_SITE_LAP(at);

	/* relaxed, both: published by the release below */
	__atomic_store_n(&site->process, lap << PTT_SITE_LAP_SHIFT_SMALL | ptt_session.process_index, __ATOMIC_RELAXED);
	__atomic_store_n(&site->id, lap << PTT_SITE_LAP_SHIFT_SMALL | id, __ATOMIC_RELAXED);
	/* release: the collector's acquire load of address sees process and id */
	__atomic_store_n(&site->address, (uint64_t)lap << PTT_SITE_LAP_SHIFT | (address & PTT_OBJECT_MASK),
			 __ATOMIC_RELEASE);
}

/* Reserve an entry of the journal; false if it is full. */
static bool reserve_site(struct ptt_segment *seg, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&seg->site_head, __ATOMIC_RELAXED);

	do {
		/* acquire: pairs with the collector's release of site_tail, after it read the entry */
		if (head - __atomic_load_n(&seg->site_tail, __ATOMIC_ACQUIRE) >= PTT_SITE_JOURNAL)
			return false;
	} while (!__atomic_compare_exchange_n(&seg->site_head, &head, head + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*at = head;
	return true;
}

/* Put @address into the empty table entry @id unless somebody else just did. */
static bool insert_site(uint32_t id, uint64_t address)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint64_t at, expected = 0;

	if (!reserve_site(seg, &at)) {
		/* relaxed: a count */
		__atomic_fetch_add(&seg->site_lost, 1, __ATOMIC_RELAXED);
		return false;
	}
	/* relaxed: the address is all there is to an entry, and never changes */
	if (__atomic_compare_exchange_n(&ptt_ring.sites[id], &expected, address, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		announce_site(at, address, id);
		return true;
	}
	announce_site(at, 0, 0);
	return expected == address;
}

/*
 * A child that was made behind the tracer's back, by a system call of its own, would go on writing as a thread of its
 * parent. The kernel has cleared its table of sites, so its very first event comes here and does not find the mark. (Its
 * pid would not do: a child of vfork has one of its own, and our memory.)
 */
static bool is_strange_child(void)
{
	return ptt_ring.sites[PTT_SITE_NONE] != PTT_SITE_MARK;
}

uint32_t ptt_ring_site_slow(uint64_t address)
{
	uint32_t probe, id = PTT_SITE_HASH(address);

	if (!ptt_session.segment || !address)
		return PTT_SITE_NONE;
	if (is_strange_child()) {
		ptt_ring_leave_session();
		return PTT_SITE_NONE;
	}
	for (probe = 0; probe < 64; probe++, id = (id + 1) % PTT_SITE_COUNT) {
		uint64_t found;

		if (id == PTT_SITE_NONE)
			continue;
		/* relaxed: as in insert_site() */
		found = __atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED);
		if (found == address)
			return id;
		if (!found && insert_site(id, address))
			return id;
		if (!found && !__atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED))
			return PTT_SITE_NONE; /* the journal is full */
	}
	return PTT_SITE_NONE;
}
