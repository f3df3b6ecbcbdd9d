/* SPDX-License-Identifier: MIT */
/* to_tracer.c - reports user events to a tracer in the same process; where there is none, its functions are null. */
#include "traced.h"

#include <stdio.h>

#include "nptl_trace.h"
#include "platform/upcalls.h"

bool px_tracer_there;

extern int __nptl_trace_confined __attribute__((weak));

void px_tracer_begin(void)
{
	/* it may begin after us, so this says nothing of whether it wants anything */
	px_tracer_there = &nptl_trace_send_posix_event != NULL;
	if (&__nptl_trace_confined)
		ptt_upcalls.confined = &__nptl_trace_confined;
}

void px_tracer_event(const struct px_event *event)
{
	nptl_trace_send_posix_event(event->id, event->data, event->size, (void *)(uintptr_t)event->address);
}

void px_tracer_name(trace_event_id_t id, const char *name)
{
	char text[PX_NAME_SIZE + 32];

	if (!px_tracer_there)
		return;
	snprintf(text, sizeof(text), "trace event %u is %s", id, name);
	nptl_trace_say(text);
}
