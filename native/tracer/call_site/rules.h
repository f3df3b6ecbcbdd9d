/* SPDX-License-Identifier: MIT */
/* rules.h - the unwind rules of this process, by number. A rule fits into a word; there are few different rules. */
#ifndef PTT_RULES_H
#define PTT_RULES_H

#include <stdint.h>

#include "unwind.h"

/* cfa:3 fp:2 cfa_offset:30 fp_offset:29 (in words); 0: no rule */
#define PTT_RULE_CFA(rule) ((rule) & 7)
#define PTT_RULE_FP(rule) ((rule) >> 3 & 3)
#define PTT_RULE_CFA_OFFSET(rule) ((int64_t)((rule) << 29) >> 34)
#define PTT_RULE_FP_OFFSET(rule) (((int64_t)(rule) >> 35) * 8)

/* Bits of a rule's number in an entry of call_site.c, beside the address. */
#define PTT_RULES_BITS (62 - PTT_CODE_BITS)
#define PTT_RULES_COUNT (1u << PTT_RULES_BITS)

extern uint64_t ptt_rules[PTT_RULES_COUNT] __attribute__((visibility("hidden")));

/*
 * ptt_rule_number - number of a rule; equal rules have the same number. 0: the rule does not fit into a word, or the
 * table is full.
 */
uint32_t ptt_rule_number(const struct ptt_unwind_rule *rule) __attribute__((visibility("hidden")));

/* ptt_rule - the rule with a number. */
static inline uint64_t ptt_rule(uint64_t number)
{
	/* relaxed: a rule is one word, stored before any thread has its number */
	return __atomic_load_n(&ptt_rules[number], __ATOMIC_RELAXED);
}

/* Entries of return addresses, by hash; call_site.c fills them. */
#define PTT_KNOWN_BITS 13
#define PTT_KNOWN_COUNT (1u << PTT_KNOWN_BITS)

extern uint64_t ptt_known_sites[PTT_KNOWN_COUNT] __attribute__((visibility("hidden")));

/* ptt_forget_call_sites - a module is closed, and another module may be loaded at its addresses. */
void ptt_forget_call_sites(void) __attribute__((visibility("hidden")));

#endif
