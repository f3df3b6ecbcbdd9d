/* SPDX-License-Identifier: MIT */
/* trace_names.h - the names of event types that a stream or log knows. */
#ifndef PX_TRACE_NAMES_H
#define PX_TRACE_NAMES_H

#include "trace_id.h"

/* px_trace_names - the names that the stream or log knows; NULL if none but the standard's. Under the guard, or by the agent. */
const struct px_names *px_trace_names(struct px_trace *trace);

/* px_trace_open_name - id of a name that the controller of another process gives it, made if there is room. Under the guard. */
trace_event_id_t px_trace_open_name(struct px_trace *trace, const char *name);

#endif
