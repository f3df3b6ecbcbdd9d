/* SPDX-License-Identifier: MIT */
/* upcalls.c - every handler of PTT: takes what the tracer offers to the ring in it. */
#include "platform/upcalls.h"

extern ptt_take_upcalls_t __nptl_trace_take_upcalls __attribute__((visibility("default")));

/* Called once, before nptl_trace_init(). A tracer of another version offers nothing that is known here. */
void __nptl_trace_take_upcalls(const struct ptt_upcalls *upcalls, size_t size)
{
	if (size == sizeof(ptt_upcalls))
		ptt_upcalls = *upcalls;
}
