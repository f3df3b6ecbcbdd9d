/* SPDX-License-Identifier: MIT */
/* call_site.h - the tracer's answer to where the program calls, for handlers. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "python_code.h"
#include "../layout/remembered_stack.h"

/*
 * The tracer's, where there is one: where the call lies that led to @site, if that is in a wrapper of thread functions
 * such as std::mutex::lock(). To be called by a handler in the thread and at the time of the event, not from a function
 * with a large frame. Async-signal-safe, keeps errno, takes no lock; reads a module's file when it first meets the module.
 * Return: NULL if @site is in no wrapper, @site if it cannot be found better this time, PTT_NO_SITE if it says nothing, as
 * that of a library which calls what a script wants to be called.
 */
extern void *__nptl_trace_outer_site(void *site) __attribute__((weak));
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
	const void *session;			 /* what is remembered of another one does not count */
};

/*
 * The tracer's as well: the number of the stack that the calling thread has from @site on outwards. To be called as above.
 * Return: 0 if the call was not found on the stack, or the stack has no number.
 */
extern uint32_t __nptl_trace_stack(void *site, const struct ptt_stack_wanted *wanted) __attribute__((weak));

/*
 * The tracer's as well: what a handler has called before the tracer tries to take a lock, from the hook that will send the event of it,
 * with the same object and site; NULL: nothing. Called in any thread, also in signal handlers; keeps errno.
 */
typedef void ptt_before_lock_t(const void *object, void *site);
extern ptt_before_lock_t *__nptl_trace_before_lock __attribute__((weak));

/* The tracer's as well: an interpreter of Python was found when the program began. */
extern bool __nptl_trace_python __attribute__((weak));

/*
 * The tracer's as well: how many threads are closing a module, in the low half, and how often that began and ended. What
 * is kept by address holds only if this was settled before it was looked up, and is the same after it was kept.
 */
extern uint64_t __nptl_trace_closing __attribute__((weak));

static inline uint64_t ptt_closing(void)
{
	/* seq_cst: pairs with the tracer's, which changes it before it makes handlers forget */
	return &__nptl_trace_closing ? __atomic_load_n(&__nptl_trace_closing, __ATOMIC_SEQ_CST) : 0;
}

static inline bool ptt_is_settled(uint64_t closing)
{
	return !(uint32_t)closing;
}

/* The tracer's as well: the call that the calling thread reports something of is one of another thread. */
extern bool __nptl_trace_is_of_other_thread(void) __attribute__((weak));

static inline bool ptt_is_of_other_thread(void)
{
	return __nptl_trace_is_of_other_thread && __nptl_trace_is_of_other_thread();
}

/* The tracer's as well: where the program sends the event of its own that the calling thread is at; else it means nothing. */
extern void *__nptl_trace_user_site(void) __attribute__((weak));

static inline void *ptt_user_site(void)
{
	return __nptl_trace_user_site ? __nptl_trace_user_site() : 0;
}

static inline void *ptt_outer_site(void *site)
{
	return __nptl_trace_outer_site && site ? __nptl_trace_outer_site(site) : 0;
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
