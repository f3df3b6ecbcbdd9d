/* SPDX-License-Identifier: MIT */
/* site.c - gives each new call site and stack a number, and announces it. */
#include "site.h"

#include <linux/futex.h>
#include <time.h>

#include "../writer/bell.h"
#include "call_site.h"
#include "../platform/confined.h"
#include "../platform/raw_syscall.h"
#include "image_files.h"
#include "../writer/session.h"

/* Number of table entries to look at, from the hash on. */
#define PROBES 64u

/* ------------------------------------------------------------ the journal */

static void announce(struct ptt_segment *seg, uint64_t at, uint64_t address, uint64_t ids)
{
	struct ptt_site_entry *site = (struct ptt_site_entry *)((char *)seg + seg->site_offset) + at % PTT_SITE_JOURNAL;
	uint32_t lap = PTT_SITE_LAP(at);

	/* relaxed, both: published by the release below */
	__atomic_store_n(&site->process, lap << PTT_SITE_LAP_SHIFT_SMALL | ptt_session.process_index, __ATOMIC_RELAXED);
	__atomic_store_n(&site->ids, (uint64_t)lap << PTT_SITE_LAP_SHIFT | ids, __ATOMIC_RELAXED);
	/* release: the collector's acquire load of address sees process and ids */
	__atomic_store_n(&site->address, (uint64_t)lap << PTT_SITE_LAP_SHIFT | (address & PTT_OBJECT_MASK),
			 __ATOMIC_RELEASE);
}

/* Reserve an entry of the journal. Return: false if the journal is full. */
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

/* A writer waits up to WAITS_MAX times for the recorder, which empties the journal several times a second. */
#define WAITS_MAX 250
#define WAIT_NS 2000000

/* Reserve an entry of the journal, once there is room. Return: false if there is no room, or this thread does not wait. */
static bool reserve_in_time(struct ptt_segment *seg, uint64_t *at)
{
	static uint32_t in_vain; /* 1 = a thread has waited in vain, and nobody has emptied the journal since */
	int i;

	/* relaxed, all: the values only decide whether to wait */
	for (i = 0; !reserve_site(seg, at); i++) {
		struct timespec slice = {.tv_nsec = WAIT_NS};
		uint32_t tail = (uint32_t)__atomic_load_n(&seg->site_tail, __ATOMIC_RELAXED);

		if (seg->when_full != PTT_WHEN_FULL_WAIT || __atomic_load_n(&in_vain, __ATOMIC_RELAXED) ||
		    __atomic_load_n(&seg->closed, __ATOMIC_RELAXED) || !ptt_is_collected(seg) || ptt_is_confined() ||
		    ptt_is_real_time())
			return false;
		if (i == WAITS_MAX) {
			__atomic_store_n(&in_vain, 1, __ATOMIC_RELAXED);
			return false;
		}
		ptt_ring_the_bell(seg);
		ptt_raw_futex((uint32_t *)&seg->site_tail, FUTEX_WAIT, tail, &slice);
	}
	if (__atomic_load_n(&in_vain, __ATOMIC_RELAXED))
		__atomic_store_n(&in_vain, 0, __ATOMIC_RELAXED);
	return true;
}

/*
 * Put @value into an empty entry of a table that is private to the process, and announce @address and @ids. May wait for
 * the collector to empty the journal, as the segment's policy says.
 * A black box has no journal.
 * @present: the value that another thread put there first; 0 if the journal is full
 * Return: true if @value is in the entry.
 */
static bool insert(uint64_t *entry, uint64_t value, uint64_t address, uint64_t ids, uint64_t *present)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint64_t at;

	*present = 0;
	if (seg->box) /* readers take the table itself */
		/* seq_cst: as below */
		return __atomic_compare_exchange_n(entry, present, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	if (!reserve_in_time(seg, &at)) {
		/* relaxed: a count */
		__atomic_fetch_add(&seg->site_lost, 1, __ATOMIC_RELAXED);
		return false;
	}
	/* seq_cst: between the two looks at ptt_closing() */
	if (!__atomic_compare_exchange_n(entry, present, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		announce(seg, at, 0, 0);
		return false;
	}
	announce(seg, at, address, ids);
	/* A signal handler may have forked: then that was the parent's journal, which nobody reads for the child. */
	if (seg != ptt_session.segment && ptt_session.segment && reserve_site(ptt_session.segment, &at))
		announce(ptt_session.segment, at, address, ids);
	return true;
}

/* ------------------------------------------------------------ call sites */

static void change_site(uint32_t id, uint64_t from, uint64_t to)
{
	/* seq_cst: between the two looks at ptt_closing() */
	__atomic_compare_exchange_n(&ptt_ring.sites[id], &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void make_stale_if_closed(uint32_t id, uint64_t address, uint64_t closing)
{
	if (ptt_closing() != closing)
		change_site(id, address, address | PTT_SITE_STALE);
}

void ptt_ring_forget_sites(void)
{
	/* relaxed, all: a thread that adds a site meanwhile makes the site stale itself */
	uint32_t i, count = __atomic_load_n(&ptt_site_table.listed, __ATOMIC_RELAXED);

	for (i = 0; i < count && i < PTT_SITE_COUNT; i++) {
		uint32_t id = __atomic_load_n(&ptt_site_table.list[i], __ATOMIC_RELAXED);
		uint64_t address = __atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED);

		if (id != PTT_SITE_NONE && address && !(address & PTT_SITE_STALE))
			change_site(id, address, address | PTT_SITE_STALE);
	}
}

/* Put @address into the empty table entry @id, unless another thread was faster. Return: true if the entry has @address. */
static bool insert_site(uint32_t id, uint64_t address, uint64_t closing)
{
	uint64_t present, entry = ptt_is_settled(closing) ? address : address | PTT_SITE_STALE;
	uint32_t at;

	if (!insert(&ptt_ring.sites[id], entry, address, PTT_SITE_IDS(id, PTT_NO_PARENT), &present))
		return (present & ~PTT_SITE_STALE) == address;
	/* relaxed, both: make_stale_if_closed() handles a site that is not in the list yet */
	at = __atomic_fetch_add(&ptt_site_table.listed, 1, __ATOMIC_RELAXED);
	if (at < PTT_SITE_COUNT)
		__atomic_store_n(&ptt_site_table.list[at], (uint16_t)id, __ATOMIC_RELAXED);
	make_stale_if_closed(id, address, closing);
	return true;
}

/*
 * The program may make a child with its own system call, unnoticed by the tracer. The child would record as a thread of its
 * parent. But the kernel has cleared the table of sites in the child, so the first event comes here and finds no mark. (The
 * pid would not tell: a child of vfork has its own pid, and our memory.)
 */
static bool is_strange_child(void)
{
	return ptt_ring.sites[PTT_SITE_NONE] != PTT_SITE_MARK;
}

uint32_t ptt_ring_site_slow(uint64_t address)
{
	struct ptt_segment *seg = ptt_session.segment;
	uint64_t closing = ptt_closing();
	uint32_t probe, id = PTT_SITE_HASH(address);

	if (!seg || !address)
		return PTT_SITE_NONE;
	if (is_strange_child()) {
		ptt_ring_leave_session();
		return PTT_SITE_NONE;
	}
	for (probe = 0; probe < PROBES; probe++, id = (id + 1) % PTT_SITE_COUNT) {
		uint64_t present;

		if (id == PTT_SITE_NONE)
			continue;
		/* relaxed: as in insert_site() */
		present = __atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED);
		if (present == address)
			return id;
		if (present == (address | PTT_SITE_STALE)) {
			if (ptt_is_settled(closing)) {
				change_site(id, present, address);
				make_stale_if_closed(id, address, closing);
			}
			return id;
		}
		if (!present && insert_site(id, address, closing))
			return id;
		if (!present && !__atomic_load_n(&ptt_ring.sites[id], __ATOMIC_RELAXED))
			break; /* the journal is full */
	}
	/* relaxed: a count */
	__atomic_fetch_add(&ptt_session.segment->without_site, 1, __ATOMIC_RELAXED);
	return PTT_SITE_NONE;
}

/* ------------------------------------------------------------ stacks */

#define ADDRESS_BITS 47
#define HASH_SHIFT 47 /* leaves the 17 bits of a number */
_Static_assert(PTT_STACK_COUNT == 1u << (64 - HASH_SHIFT), "a hash is a number");

/*
 * An address in ADDRESS_BITS bits. Programs on aarch64 lie at the top of 48 bits, and their instructions at multiples of
 * four. No two addresses get the same bits.
 */
static uint64_t in_bits(uint64_t address)
{
#if defined(__aarch64__)
	if (address >> ADDRESS_BITS)
		return UINT64_C(3) << (ADDRESS_BITS - 2) | (address & ((UINT64_C(1) << ADDRESS_BITS) - 1)) >> 2;
#endif
	return address;
}

/* The number of the stack that calls from @address, with the caller's stack @caller. */
static uint32_t number_of(uint32_t caller, uint64_t address)
{
	uint64_t wanted = (uint64_t)caller << ADDRESS_BITS | in_bits(address);
	uint32_t i, id = (uint32_t)(wanted * UINT64_C(0x9e3779b97f4a7c15) >> HASH_SHIFT);

	for (i = 0; i < PROBES; i++, id = (id + 1) % PTT_STACK_COUNT) {
		uint64_t *entry = &ptt_site_table.stack[id], present;

		if (id < PTT_STACK_FIRST)
			continue;
		/* relaxed: the word leads to no other memory */
		present = __atomic_load_n(entry, __ATOMIC_RELAXED);
		if (!present && insert(entry, wanted, address, PTT_SITE_IDS(id, caller), &present))
			return id;
		if (present == wanted)
			return id;
		if (!present)
			break; /* the journal is full */
	}
	return PTT_STACK_NONE;
}

static uint32_t number_of_stack(const uint64_t *frame, uint32_t count, bool whole)
{
	uint32_t id = whole ? PTT_STACK_WHOLE : PTT_STACK_CUT;

	while (count-- && id != PTT_STACK_NONE)
		id = number_of(id, frame[count]);
	return id;
}

uint32_t ptt_ring_stack(void *site)
{
	struct ptt_segment *seg = ptt_session.segment;
	struct ptt_stack_wanted wanted = {
		.number = number_of_stack,
		.remembered = ptt_site_table.remembered,
		.session = seg,
	};
	uint32_t id;

	if (!seg || !seg->stack_depth || is_strange_child() || ptt_upcalls.is_of_other_thread())
		return PTT_STACK_NONE;
	wanted.room = seg->stack_depth < PTT_STACK_DEPTH_MAX ? seg->stack_depth : PTT_STACK_DEPTH_MAX;
	wanted.python = seg->python ? ptt_ring_python_code : NULL;
	id = ptt_upcalls.stack(site, &wanted);
	if (id == PTT_STACK_NONE)
		/* relaxed: a count */
		__atomic_fetch_add(&seg->without_stack, 1, __ATOMIC_RELAXED);
	return id;
}
