/* SPDX-License-Identifier: MIT */
/* upcalls.c - in every handler of PTT: takes the tracer's functions for the ring. */
#include "platform/upcalls.h"

extern ptt_take_upcalls_t __nptl_trace_take_upcalls __attribute__((visibility("default")));

/* Called once, before nptl_trace_init(). Functions of a tracer of another version are ignored. */
void __nptl_trace_take_upcalls(const struct ptt_upcalls *upcalls, size_t size)
{
	if (size == sizeof(ptt_upcalls))
		ptt_upcalls = *upcalls;
}
