/* SPDX-License-Identifier: MIT */
/* state.c - what all parts of the tracer look at: is it on, in which process, and whom events go to. */
#include "tracer.h"

EXPORT int __nptl_trace_enabled;
EXPORT int __nptl_trace_confined;

pid_t ptt_pid;
bool ptt_handler_reentrant;

void ptt_ignore_event(struct nptl_trace_event event)
{
	(void)event;
}

ptt_getevent_t *ptt_getevent = ptt_ignore_event;
