/* SPDX-License-Identifier: MIT */
/* agent.h - the thread that holds a stream while its controller lives. */
#ifndef PX_AGENT_H
#define PX_AGENT_H

#include "trace_id.h"

/*
 * px_agent_start - begin to hold the stream, and to flush it. px_agent_end - see to the last flush, and let go of it.
 * Both return 0 or an error number.
 */
int px_agent_start(struct px_trace *trace);
int px_agent_end(struct px_trace *trace);

#endif
