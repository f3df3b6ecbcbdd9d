/* SPDX-License-Identifier: MIT */
/* control.h - what else of the library has a stream do. */
#ifndef PX_CONTROL_H
#define PX_CONTROL_H

#include "trace_id.h"

/* px_stop - stop the stream, if it is running, for a call from @address. */
void px_stop(struct px_trace *trace, const void *address);

#endif
