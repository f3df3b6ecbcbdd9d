/* SPDX-License-Identifier: MIT */
/* heir.h - the process that outlives a controller. */
#ifndef PX_HEIR_H
#define PX_HEIR_H

#include "trace_id.h"

/*
 * px_heir_start - start a process that sees to the stream's end if this one ends without doing so. Return: its id, or 0.
 * px_heir_end - the stream has been let go of: wait until that process has noticed.
 */
uint32_t px_heir_start(struct px_trace *trace);
void px_heir_end(uint32_t heir);

#endif
