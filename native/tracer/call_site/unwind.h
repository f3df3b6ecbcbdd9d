/* SPDX-License-Identifier: MIT */
/* unwind.h - one step up the stack: what the unwind table of a module says of a place in its code. */
#ifndef PTT_UNWIND_H
#define PTT_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How to come from a frame to its caller's. The canonical frame address is where the stack pointer was before the call;
 * the return address lies in the word below it.
 */
struct ptt_unwind_rule {
	uintptr_t function;  /* where the code begins that the rule is of */
	bool by_frame_pointer; /* the canonical frame address is so far above the frame pointer, else above the stack pointer */
	uint64_t cfa_offset;
	uint64_t fp_below; /* the caller's frame pointer lies so far below it; 0: nothing was done to it */
};

/*
 * ptt_unwind_rule - look up the rule of a place
 * @table: .eh_frame_hdr of the module that @pc lies in
 * Return: false if there is none, or none as simple as this. Reads memory only: safe in signal handlers.
 */
bool ptt_unwind_rule(const void *table, uintptr_t pc, struct ptt_unwind_rule *rule);

#endif
