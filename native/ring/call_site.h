/* SPDX-License-Identifier: MIT */
/* call_site.h - the tracer's answer to where the program calls, for handlers. */
#ifndef PTT_CALL_SITE_H
#define PTT_CALL_SITE_H

/*
 * The tracer's, where there is one: where the call lies that led to @site, if that is in a wrapper of thread functions
 * such as std::mutex::lock(). To be called by a handler in the thread and at the time of the event, not from a function
 * with a large frame. Async-signal-safe, keeps errno, takes no lock; reads a module's file when it first meets the module.
 * Return: NULL if @site is in no wrapper, @site if it cannot be told better this time.
 */
extern void *__nptl_trace_outer_site(void *site) __attribute__((weak));

static inline void *ptt_outer_site(void *site)
{
	return __nptl_trace_outer_site && site ? __nptl_trace_outer_site(site) : 0;
}

/* ptt_program_site - the best that is known of it now. */
static inline void *ptt_program_site(void *site)
{
	void *outer = ptt_outer_site(site);

	return outer ? outer : site;
}

#endif
