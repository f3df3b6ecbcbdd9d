/* SPDX-License-Identifier: MIT */
/* sites.h - the call sites of a process image: the addresses of its numbers, and the modules at these addresses. */
#ifndef PTTREAD_SITES_H
#define PTTREAD_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "../ring/layout/ptt_abi.h"
#include "nptl_trace_events.h"
#include "pttread.h"

/*
 * A hash table by number. A word has the number in its high 16 bits and the address below; 0 = empty. At least one word is
 * always empty.
 */
struct rd_sites {
	const uint64_t *words; /* NULL until there is a site */
	struct ptt_tenant *tenants;
	uint32_t mask;
	uint32_t count;
	uint32_t tenant_count;
	uint32_t tenant_room;
	uint64_t *of_stack; /* sites of events with a stack, by the number of the stack; 0 = the recorded site */
	uint32_t of_stack_count;
};

/* rd_sites_set - sets the address of a number, in place of any address before. Return: 0 or -ENOMEM. */
int rd_sites_set(struct rd_sites *sites, uint32_t id, uint64_t address);
/* rd_sites_add_tenant - adds a tenant; call it in the order of ptt_reader_set_tenants(). Return: 0, -EINVAL or -ENOMEM. */
int rd_sites_add_tenant(struct rd_sites *sites, const struct ptt_tenant *tenant);
/* rd_sites_of_stacks - sets the sites of events by numbers of stacks, and drops the sites set before. Return: 0 or -ENOMEM. */
int rd_sites_of_stacks(struct rd_sites *sites, const uint64_t *site, uint32_t count);
void rd_sites_free(struct rd_sites *sites);
/* rd_sites_generation - the generation of an address at a time, shifted to its place in a site. */
uint64_t rd_sites_generation(const struct rd_sites *sites, uint64_t address, uint64_t ticks);

/*
 * Does an event's site name the place where code is entered, rather than a return address? So it is at the beginning of a
 * thread, in its first routine.
 */
static inline bool rd_is_entry(uint32_t id)
{
	return id == (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_BEGIN) ||
	       id == (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_INIT);
}

/*
 * rd_site_of - the value of an event in the column `site`: its address, and marks that distinguish sites at the same
 * address.
 */
static inline uint64_t rd_site_of(const struct rd_sites *sites, uint64_t address, uint32_t id, uint64_t ticks)
{
	if (__builtin_expect(sites->tenant_count != 0, 0))
		address |= rd_sites_generation(sites, address, ticks);
	return __builtin_expect(rd_is_entry(id), 0) && address ? address | PTT_SITE_ENTRY : address;
}

/* rd_sites_choose - the value in the column `site` of an event that has a stack. */
static inline uint64_t rd_sites_choose(const struct rd_sites *sites, uint32_t stack, uint64_t site)
{
	return stack < sites->of_stack_count && sites->of_stack[stack] ? sites->of_stack[stack] : site;
}

/* rd_sites_find - the address of a number; 0 if it is not known. */
static inline uint64_t rd_sites_find(const struct rd_sites *sites, uint32_t id)
{
	if (!sites->words)
		return 0;
	for (uint32_t i = id;; i++) {
		uint64_t word = sites->words[i & sites->mask];

		if (word >> PTT_SITE_SHIFT == id || !word)
			return word & PTT_SITE_ADDRESS;
	}
}

#endif
