/* SPDX-License-Identifier: MIT */
/* call_site.h - the tracer's answer to where the program calls, for handlers. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The tracer's, where there is one: where the call lies that led to @site, if that is in a wrapper of thread functions
 * such as std::mutex::lock(). To be called by a handler in the thread and at the time of the event, not from a function
 * with a large frame. Async-signal-safe, keeps errno, takes no lock; reads a module's file when it first meets the module.
 * Return: NULL if @site is in no wrapper, @site if it cannot be told better this time, PTT_NO_SITE if it says nothing, as
 * that of a library which calls what a script wants to be called.
 */
extern void *__nptl_trace_outer_site(void *site) __attribute__((weak));
#define PTT_NO_SITE ((void *)1)

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
