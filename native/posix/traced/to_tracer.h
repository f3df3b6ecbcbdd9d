/* SPDX-License-Identifier: MIT */
/* to_tracer.h - a tracer of the thread library in the same process: user events go to its trace too. */
#ifndef PX_TO_TRACER_H
#define PX_TO_TRACER_H

#include "buffer.h"

/* Set once, in the beginning. */
extern bool px_tracer_there __attribute__((visibility("hidden")));

static inline bool px_tracer_listens(void)
{
	return px_tracer_there;
}

/* px_tracer_begin - find out whether there is one. */
void px_tracer_begin(void);

/* px_tracer_event - report an event to the tracer, which is there. Safe in signal handlers. px_tracer_name - report the name of an event type. */
void px_tracer_event(const struct px_event *event);
void px_tracer_name(trace_event_id_t id, const char *name);

#endif
