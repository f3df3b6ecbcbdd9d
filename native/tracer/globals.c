/* SPDX-License-Identifier: MIT */
/* globals.c - what all parts of the tracer read: whether it is on, in which process, and which function takes events. */
#include "tracer.h"

EXPORT int __nptl_trace_enabled;
EXPORT int __nptl_trace_confined;

pid_t ptt_pid;
__thread int32_t ptt_held;
bool ptt_handler_reentrant;

void ptt_ignore_event(struct nptl_trace_event event)
{
	(void)event;
}

ptt_getevent_t *ptt_getevent = ptt_ignore_event;
