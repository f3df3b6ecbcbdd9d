/* SPDX-License-Identifier: MIT */
/* user.c - events of the program itself. */
#include "tracer.h"

/* A tail call where nothing has to be changed: the handler's return address is then the program's own call site. */
EXPORT void nptl_trace_send_user_event(struct nptl_trace_event event)
{
	if (ptt_level(NPTL_DOMAIN_USER) < NPTL_LEVEL_USER)
		return;
	event.source = NPTL_TRACE_SOURCE_PROGRAM;
	ptt_getevent(event);
}
