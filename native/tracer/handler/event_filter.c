/* SPDX-License-Identifier: MIT */
/* event_filter.c - drops the types of events that the user does not want, before any handler. */
/*
 * Without a filter, events do not pass through this file. A filter never drops events of the life of processes and
 * threads, nor of handlers. A trace needs these to find the thread and process of an event. A handler releases a
 * thread's memory at its end event.
 */
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

#define BIT(number) (UINT64_C(1) << (number))

static const uint64_t always[NPTL_DOMAIN_COUNT] = {
	[NPTL_DOMAIN_THREAD] = BIT(NPTL_EV_NEW_THREAD_CREATED) | BIT(NPTL_EV_THREAD_BEGIN) | BIT(NPTL_EV_THREAD_END) |
			       BIT(NPTL_EV_THREAD_NAME),
	[NPTL_DOMAIN_PROCESS] = UINT64_MAX,
	[NPTL_DOMAIN_HANDLER] = UINT64_MAX,
};

/* By domain: a bit for the number of each event that passes. Set only before the first event. */
static uint64_t passing[NPTL_DOMAIN_COUNT];
static void (*behind)(struct nptl_trace_event event);

/* On the hot path. */
static void filtered_getevent(struct nptl_trace_event event)
{
	bool nptl = event.source == NPTL_TRACE_SOURCE_NPTL;
	unsigned int domain = nptl ? (uint8_t)event.domain : NPTL_DOMAIN_USER;
	unsigned int number = nptl ? (uint8_t)event.event : NPTL_EV_USER;

	if (passing[domain % NPTL_DOMAIN_COUNT] >> (number % 64) & 1)
		behind(event);
}

ptt_getevent_t *ptt_filter(const char *spec, ptt_getevent_t *next)
{
	memcpy(passing, always, sizeof(passing));
	while (*spec) {
		size_t name = strcspn(spec, "=,"), item = strcspn(spec, ",");
		int domain = ptt_domain(spec, name);

		if (domain && spec[name] == '=')
			passing[domain] |= strtoull(spec + name + 1, NULL, 16);
		spec += item;
		spec += *spec == ',';
	}
	behind = next;
	return filtered_getevent;
}
