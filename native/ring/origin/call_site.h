/* SPDX-License-Identifier: MIT */
/* call_site.h - call sites and stacks of the program: requests of handlers to the tracer. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "python_code.h"
#include "../platform/upcalls.h"
#include "../layout/remembered_stack.h"

/* Result of ptt_upcalls.outer_site(): the site tells nothing. */
#define PTT_NO_SITE ((void *)1)

/* A handler's request for a stack. */
struct ptt_stack_wanted {
	uint32_t room; /* frames, at most PTT_STACK_DEPTH_MAX */

	/*
	 * number - the number of a stack, given as return addresses from the call site outwards
	 * @whole: the last frame is in the first function of the thread
	 * Return: 0 if the stack has no number.
	 */
	uint32_t (*number)(const uint64_t *frame, uint32_t count, bool whole);

	/*
	 * Numbers the functions of Python that take the place of the interpreter's frames, see ptt_abi.h; NULL: keep those
	 * frames.
	 */
	ptt_number_python_code *python;

	struct ptt_remembered_stack *remembered; /* PTT_REMEMBERED_STACKS of them, all 0 at first */
	const void *session;			 /* remembered stacks of another session do not count */
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

/* ptt_program_site - the program's call site, or @site if that is the best known now; NULL if @site tells nothing. */
static inline void *ptt_program_site(void *site)
{
	void *outer = ptt_outer_site(site);

	if (outer == PTT_NO_SITE)
		return 0;
	return outer ? outer : site;
}

#endif
