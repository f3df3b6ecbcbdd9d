/* SPDX-License-Identifier: MIT */
/* call_site.h - where the program calls from, as the tracer answers it to handlers. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "python_code.h"
#include "../platform/upcalls.h"
#include "../layout/remembered_stack.h"

/* ptt_upcalls.outer_site(): the site says nothing. */
#define PTT_NO_SITE ((void *)1)

/* What a handler wants of a stack. */
struct ptt_stack_wanted {
	uint32_t room; /* for so many frames, at most PTT_STACK_DEPTH_MAX */

	/*
	 * number - of a stack: return addresses from the call site on outwards. Return: 0 if it has none.
	 * @whole: the last one is in the function that everything of this thread began with
	 */
	uint32_t (*number)(const uint64_t *frame, uint32_t count, bool whole);

	/* Numbers the functions of Python that are to stand in place of the interpreter's own, see ptt_abi.h; or NULL. */
	ptt_number_python_code *python;

	struct ptt_remembered_stack *remembered; /* PTT_REMEMBERED_STACKS of them, all 0 at first */
	const void *session;			 /* stacks remembered in another session do not count */
};

static inline uint64_t ptt_closing(void)
{
	/* seq_cst: pairs with the tracer, which changes the word before it makes handlers forget */
	return __atomic_load_n(ptt_upcalls.closing, __ATOMIC_SEQ_CST);
}

static inline bool ptt_is_settled(uint64_t closing)
{
	return !(uint32_t)closing;
}

static inline void *ptt_outer_site(void *site)
{
	return site ? ptt_upcalls.outer_site(site) : NULL;
}

/* ptt_program_site - the best that is known of it now. */
static inline void *ptt_program_site(void *site)
{
	void *outer = ptt_outer_site(site);

	if (outer == PTT_NO_SITE)
		return 0;
	return outer ? outer : site;
}

#endif
