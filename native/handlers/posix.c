/* SPDX-License-Identifier: MIT */
/* posix.c - the tracer's events become system events of every POSIX stream that traces the process. */
/*
 *     PTHREAD_NPTL_TRACE=posix program
 *
 * Each event type of the catalogue becomes an event type in the streams. Its name is nptl_ and the event's name in lower
 * case, such as nptl_mutex_taken (tracer_type.h). A controller filters these events like all others. The data of an event
 * is the parameter struct of <nptl_trace_events.h>, its address is the call site. This program or another program makes a
 * stream with posix_trace_create(). While there is no stream, an event costs a load and a compare.
 *
 * User events of <trace.h> go to the streams directly, so the tracer's reports of them are skipped.
 */
#define NPTL_TRACE_IMPLEMENTATION
#include <stdbool.h>

#include "origin/call_site.h"
#include "catalog.h"
#include "handler.h"
#include "nptl_trace.h"
#include "nptl_trace_events.h"
#include "system_event.h"
#include "tracer_type.h"

/* Event type in the streams, by event type of the tracer; 0 = none. */
static uint16_t stream_type[1024];
static bool named;

static void name_types(void)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		char name[PX_TRACER_NAME];

		px_tracer_type_name(name, type);
		if (type->id != ID(NPTL_DOMAIN_USER, NPTL_EV_POSIX_TRACE_EVENT))
			stream_type[type->id] = (uint16_t)px_system_type(name);
	}
}

EXPORT void nptl_trace_init(char **args)
{
	(void)args;
	/* the child of a fork belongs to its parent's family, and has the same names */
	if (!named)
		name_types();
	named = true;
}

static uint32_t type_of(const struct nptl_trace_event *event)
{
	if (event->source == NPTL_TRACE_SOURCE_PROGRAM)
		return ID(NPTL_DOMAIN_USER, NPTL_EV_USER);
	return ID((uint8_t)event->domain & 15, (uint8_t)event->event & 63);
}

EXPORT void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	const struct nptl_trace_param *param = event.param;
	uint32_t type;
	void *site;

	if (!px_is_traced())
		return;
	type = stream_type[type_of(&event)];
	if (!type)
		return;
	if (event.source == NPTL_TRACE_SOURCE_PROGRAM)
		site = ptt_upcalls.user_site();
	else
		site = param && event.param_size >= sizeof(*param) ? ptt_program_site(param->site) : NULL;
	px_system_event(type, event.param, event.param_size, site);
}
