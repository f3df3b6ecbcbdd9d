/* SPDX-License-Identifier: MIT */
/* to_tracer.c - reports user events to a tracer in the same process. Without a tracer, its weak functions are null. */
#include "traced.h"

#include <stdio.h>

#include "nptl_trace.h"
#include "platform/upcalls.h"

bool px_has_tracer;

extern int __nptl_trace_confined __attribute__((weak));

void px_tracer_begin(void)
{
	/* the tracer may begin after us, so this does not show whether it records anything */
	px_has_tracer = &nptl_trace_send_posix_event != NULL;
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

	if (!px_has_tracer)
		return;
	snprintf(text, sizeof(text), "trace event %u is %s", id, name);
	nptl_trace_say(text);
}
