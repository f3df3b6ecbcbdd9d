/* SPDX-License-Identifier: MIT */
/* other_lock.h - the tracer's answer to whether an object is another library's lock, for handlers. */
#ifndef PTT_OTHER_LOCK_H
#define PTT_OTHER_LOCK_H

#include <stdint.h>

enum ptt_other_lock {
	PTT_OTHER_NONE,	   /* one of the thread library's own */
	PTT_OTHER_PRIVATE, /* another library's, which only threads of one process can use */
	PTT_OTHER_UNKNOWN, /* of which nothing is known but its address */
};

/*
 * The tracer's, where there is one: of which library is @object, of an event that the calling thread reports as one of a mutex or
 * a read-write lock? May say so of a mutex that lies where another library's lock was. Async-signal-safe.
 */
extern enum ptt_other_lock __nptl_trace_other_lock(uint64_t object) __attribute__((weak));

static inline enum ptt_other_lock ptt_other_lock_at(uint64_t object)
{
	return __nptl_trace_other_lock ? __nptl_trace_other_lock(object) : PTT_OTHER_NONE;
}

#endif
