/* SPDX-License-Identifier: MIT */
/* handler.c - in every handler of PTT: its promise to the tracer, and the tracer's functions for the ring. */
#include "handler.h"

#include "platform/upcalls.h"

/* No handler of PTT calls a traced function. */
EXPORT extern const int nptl_trace_handler_reentrant;
EXPORT const int nptl_trace_handler_reentrant = 1;

extern ptt_take_upcalls_t __nptl_trace_take_upcalls EXPORT;

/* Called once, before nptl_trace_init(). Functions of a tracer of another version are ignored. */
void __nptl_trace_take_upcalls(const struct ptt_upcalls *upcalls, size_t size)
{
	if (size == sizeof(ptt_upcalls))
		ptt_upcalls = *upcalls;
}
