/* SPDX-License-Identifier: MIT */
/* ring_put.h - records go in: events that the trace point had no free way for, and the stream's own. */
#ifndef PX_RING_PUT_H
#define PX_RING_PUT_H

#include "buffer.h"

/* px_put_slow - record an event where the fast path could not. */
void px_put_slow(const struct px_buffer *buffer, const struct px_event *event) __attribute__((cold, noinline));

/* px_put_torn - the record just written was given up meanwhile. */
void px_put_torn(const struct px_buffer *buffer) __attribute__((cold, noinline));

/*
 * px_put_own - record an event of the stream's own, and change flags in the same step
 * @set, @clear: flags of head
 * @wanted: nothing happens, and false is returned, if not (flags & @mask) == @wanted
 * The event is left out if it is filtered out or there is no room at all; the flags change all the same.
 */
bool px_put_own(const struct px_buffer *buffer, const struct px_event *event, uint64_t mask, uint64_t wanted,
		uint64_t set, uint64_t clear);

#endif
