/* SPDX-License-Identifier: MIT */
/* gaps.h - the events of a stream in order, with those that report events lost in between. */
#ifndef PX_GAPS_H
#define PX_GAPS_H

#include "trace_id.h"

/* px_next - the next event of a stream, those that report gaps among them, into @to. Under trace.lock. */
enum px_take px_next(struct px_trace *trace, struct px_record *to);

#endif
