/* SPDX-License-Identifier: MIT */
/* wake.h - the waiters of a stream: analyzers and its agent for events, writers for room. */
/* Wakes by raw system calls: safe in signal handlers, keeps errno, takes no lock. */
#ifndef PX_WAKE_H
#define PX_WAKE_H

#include "posix.h"

/* px_wake - wake those of @sleepers (PX_WAITS_…) that wait. */
void px_wake(struct px_stream *stream, uint32_t sleepers);

/* px_wake_due - somebody waits: wake whom the events up to place @end concern. */
void px_wake_due(struct px_stream *stream, uint64_t end) __attribute__((cold, noinline));

/* px_wake_writers - wake those that wait for room, if there is enough of it with @used cells taken. */
void px_wake_writers(struct px_stream *stream, uint64_t used);

/* px_wake_agent - have the agent look what there is to do, whether it waits or is about to. */
void px_wake_agent(struct px_stream *stream);

#endif
