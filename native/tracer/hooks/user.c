/* SPDX-License-Identifier: MIT */
/* user.c - events that the program sends (nptl_trace.h), and events of posix_trace_event(). */
#include <string.h>

#include "layout/ptt_abi.h"
#include "origin/call_site.h"
#include "tracer.h"

#define BYTES_SMALL 256u

/* The call site of the present user event. The event has no field for it, so handlers ask for it. */
static __thread void *user_site INITIAL_EXEC;

void *ptt_user_site(void)
{
	return user_site;
}

EXPORT void nptl_trace_send_user_event(struct nptl_trace_event event)
{
	void *interrupted = user_site; /* this may be a signal handler, which interrupted a user event */

	if (ptt_level(NPTL_DOMAIN_USER) < NPTL_LEVEL_USER)
		return;
	event.source = NPTL_TRACE_SOURCE_PROGRAM;
	user_site = CALL_SITE;
	ptt_receiver.getevent(event);
	user_site = interrupted;
}

static void send_posix_event(struct nptl_trace_posix_trace_event *param, unsigned int type, const void *data, size_t kept,
			     size_t size, void *site)
{
	memset(param, 0, sizeof(*param));
	param->site = site;
	param->type = (uint16_t)type;
	param->size = (uint32_t)size;
	param->data_pieces = (uint32_t)PTT_PIECES(kept);
	if (kept)
		memcpy(param->data, data, kept);
	ptt_send(NPTL_DOMAIN_USER, NPTL_EV_POSIX_TRACE_EVENT, param, sizeof(*param) + kept);
}

/* Not inlined: short data shall not need a large stack. */
static __attribute__((noinline)) void send_large(unsigned int type, const void *data, size_t size, void *site)
{
	union {
		struct nptl_trace_posix_trace_event event;
		char bytes[sizeof(struct nptl_trace_posix_trace_event) + PTT_BYTES_MAX];
	} param;

	send_posix_event(&param.event, type, data, size < PTT_BYTES_MAX ? size : PTT_BYTES_MAX, size, site);
}

EXPORT void nptl_trace_send_posix_event(unsigned int type, const void *data, size_t size, void *site)
{
	union {
		struct nptl_trace_posix_trace_event event;
		char bytes[sizeof(struct nptl_trace_posix_trace_event) + BYTES_SMALL];
	} param;

	if (ptt_level(NPTL_DOMAIN_USER) < NPTL_LEVEL_POSIX_TRACE_EVENT)
		return;
	if (size <= BYTES_SMALL)
		send_posix_event(&param.event, type, data, size, size, site);
	else
		send_large(type, data, size, site);
}
