/* SPDX-License-Identifier: MIT */
/* stack.c - numbers the stacks of calls, each once, and announces them. */
#include "stack.h"

#include "call_site.h"
#include "python_code.h"
#include "../writer/session.h"
#include "site.h"
#include "../writer/writer.h"

#define ADDRESS_BITS 47
#define PROBES 64u
#define HASH_SHIFT 47 /* leaves the 17 bits of a number */
_Static_assert(PTT_STACK_COUNT == 1u << (64 - HASH_SHIFT), "a hash is a number");

/*
 * An address in so many bits. Programs of aarch64 lie at the top of 48, and their instructions at multiples of four; what
 * they come to is nowhere else.
 */
static uint64_t in_bits(uint64_t address)
{
#if defined(__aarch64__)
	if (address >> ADDRESS_BITS)
		return UINT64_C(3) << (ADDRESS_BITS - 2) | (address & ((UINT64_C(1) << ADDRESS_BITS) - 1)) >> 2;
#endif
	return address;
}

/* The number of the stack that calls from @address, and that itself was called from @caller. */
static uint32_t number_of(uint32_t caller, uint64_t address)
{
	uint64_t wanted = (uint64_t)caller << ADDRESS_BITS | in_bits(address);
	uint32_t i, id = (uint32_t)(wanted * UINT64_C(0x9e3779b97f4a7c15) >> HASH_SHIFT);

	for (i = 0; i < PROBES; i++, id = (id + 1) % PTT_STACK_COUNT) {
		uint64_t *entry = &ptt_site_table.stack[id], found;

		if (id < PTT_STACK_FIRST)
			continue;
		/* relaxed: the word is all there is */
		found = __atomic_load_n(entry, __ATOMIC_RELAXED);
		if (!found && ptt_ring_insert(entry, wanted, address, PTT_SITE_IDS(id, caller), &found))
			return id;
		if (found == wanted)
			return id;
		if (!found)
			break; /* the journal is full */
	}
	return PTT_STACK_NONE;
}

static uint32_t number_of_all(const uint64_t *frame, uint32_t count, bool whole)
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
		.number = number_of_all,
		.remembered = ptt_site_table.remembered,
		.session = seg,
	};
	uint32_t id;

	if (!seg || !seg->stack_depth || ptt_ring_is_strange_child() || ptt_upcalls.is_of_other_thread())
		return PTT_STACK_NONE;
	wanted.room = seg->stack_depth < PTT_STACK_DEPTH_MAX ? seg->stack_depth : PTT_STACK_DEPTH_MAX;
	wanted.python = seg->python ? ptt_ring_python_code : NULL;
	id = ptt_upcalls.stack(site, &wanted);
	if (id == PTT_STACK_NONE)
		/* relaxed: a count */
		__atomic_fetch_add(&seg->without_stack, 1, __ATOMIC_RELAXED);
	return id;
}
