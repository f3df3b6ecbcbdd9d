/* SPDX-License-Identifier: MIT */
/* rules.h - the rules of unwinding that have been met, each a word and known by a number: there are few different rules. */
#ifndef PTT_RULES_H
#define PTT_RULES_H

#include <stdint.h>

#include "unwind.h"

/* cfa:3 fp:2 cfa_offset:30 fp_offset:29 (in words); 0: no rule */
#define PTT_RULE_CFA(rule) ((rule) & 7)
#define PTT_RULE_FP(rule) ((rule) >> 3 & 3)
#define PTT_RULE_CFA_OFFSET(rule) ((int64_t)((rule) << 29) >> 34)
#define PTT_RULE_FP_OFFSET(rule) (((int64_t)(rule) >> 35) * 8)

/* An entry of call_site.c has a number of a rule beside an address. */
#define PTT_RULES_BITS (62 - PTT_CODE_BITS)
#define PTT_RULES_COUNT (1u << PTT_RULES_BITS)

extern uint64_t ptt_rules[PTT_RULES_COUNT] __attribute__((visibility("hidden")));

/* ptt_rule_number - number of a rule, the same for all that are alike; 0 if it is too unusual, or there are too many. */
uint32_t ptt_rule_number(const struct ptt_unwind_rule *rule) __attribute__((visibility("hidden")));

/* ptt_rule - the rule of a number. */
static inline uint64_t ptt_rule(uint64_t number)
{
	/* relaxed: the word is all there is, and was there before its number */
	return __atomic_load_n(&ptt_rules[number], __ATOMIC_RELAXED);
}

/* What is known of return addresses, by hash: words that call_site.c fills. */
#define PTT_KNOWN_BITS 13
#define PTT_KNOWN_COUNT (1u << PTT_KNOWN_BITS)

extern uint64_t ptt_known_sites[PTT_KNOWN_COUNT] __attribute__((visibility("hidden")));

/* ptt_forget_call_sites - a module is closed: another module may come to lie at these addresses. */
void ptt_forget_call_sites(void) __attribute__((visibility("hidden")));

#endif
