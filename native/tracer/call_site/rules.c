/* SPDX-License-Identifier: MIT */
/* rules.c - the tables of unwind rules and of return addresses. Takes no lock; safe in signal handlers. */
#include "rules.h"

#include <stdbool.h>

#define PROBES 64u
#define WORD ((int32_t)sizeof(uintptr_t))

/* Entry 0 stays empty: 0 is no rule. */
uint64_t ptt_rules[PTT_RULES_COUNT];

/* Return: 0 if the rule does not fit. */
static uint64_t pack(const struct ptt_unwind_rule *rule)
{
	uint64_t cfa_offset = (uint64_t)(int64_t)rule->cfa_offset & ((UINT64_C(1) << 30) - 1);
	uint64_t word = (uint64_t)rule->cfa | (uint64_t)rule->fp << 3 | cfa_offset << 5 |
			(uint64_t)(int64_t)(rule->fp_offset / WORD) << 35;

	return rule->fp_offset % WORD || PTT_RULE_CFA_OFFSET(word) != rule->cfa_offset ? 0 : word;
}

uint32_t ptt_rule_number(const struct ptt_unwind_rule *rule)
{
	uint64_t word = pack(rule);
	uint32_t i, at = (uint32_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PTT_RULES_BITS));

	for (i = 0; word && i < PROBES; i++, at = (at + 1) % PTT_RULES_COUNT) {
		uint64_t present = 0;

		if (!at)
			continue;
		/* relaxed, both: a rule is one word, and no other data depends on it */
		if (__atomic_compare_exchange_n(&ptt_rules[at], &present, word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    present == word)
			return at;
	}
	return 0;
}

uint64_t ptt_known_sites[PTT_KNOWN_COUNT];

void ptt_forget_call_sites(void)
{
	/* relaxed, both: an entry is one word, and no other data depends on it */
	for (uint32_t i = 0; i < PTT_KNOWN_COUNT; i++)
		if (__atomic_load_n(&ptt_known_sites[i], __ATOMIC_RELAXED))
			__atomic_store_n(&ptt_known_sites[i], 0, __ATOMIC_RELAXED);
}
