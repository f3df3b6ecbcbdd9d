/* SPDX-License-Identifier: MIT */
/* other_lock.h - the tracer's answer to whether an object is another library's lock, for handlers. */
#ifndef PTT_OTHER_LOCK_H
#define PTT_OTHER_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The tracer's, where there is one: is @object, of an event that the calling thread reports as one of a mutex, another
 * library's lock? Of such a lock nothing is known but its address. May say so of a mutex that lies where one was.
 * Async-signal-safe.
 */
extern bool __nptl_trace_is_other_lock(uint64_t object) __attribute__((weak));

static inline bool ptt_is_other_lock(uint64_t object)
{
	return __nptl_trace_is_other_lock && __nptl_trace_is_other_lock(object);
}

#endif
