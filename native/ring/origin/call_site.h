/* SPDX-License-Identifier: MIT */
/* call_site.h - call sites and stacks of the program: requests of handlers to the tracer. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../platform/upcalls.h"
#include "../layout/remembered_stack.h"

/* Result of ptt_upcalls.outer_site(): the site tells nothing. */
#define PTT_NO_SITE ((void *)1)

/* A text in the interpreter's memory, in characters of one, two or four bytes. */
struct ptt_python_text {
	const void *at;
	size_t size; /* in bytes */
	uint32_t width;
};

/* A code object of Python in a stack. */
struct ptt_python_code {
	uint64_t identity; /* never 0; equal for the same code, as far as its addresses show that */

	/* describe - fill in the fields below. Return: false if it cannot be read, or is no code. Async-signal-safe. */
	bool (*describe)(struct ptt_python_code *code);

	uint32_t minor; /* version of the interpreter */
	uint32_t first_line;
	struct ptt_python_text file, name, lines;
};

/* Return: the number of a code object in this process; 0 if it has none. */
typedef uint32_t ptt_number_python_code(struct ptt_python_code *code);

/* A handler's request for a stack. */
struct ptt_stack_wanted {
	uint32_t room; /* frames, at most PTT_STACK_DEPTH_MAX */

	/*
	 * number - the number of a stack, given as return addresses from the call site outwards
	 * @whole: the last frame is in the first function of the thread
	 * Return: 0 if the stack has no number.
	 */
	uint32_t (*number)(const uint64_t *frame, uint32_t count, bool whole);

	/* Numbers the functions of Python that take the place of the interpreter's frames, see ptt_abi.h; NULL: keep those frames. */
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
