/* SPDX-License-Identifier: MIT */
/* guard.h - what lets one thread of the process at a time change what its functions share. */
#ifndef PX_GUARD_H
#define PX_GUARD_H

#include <pthread.h>

#include "platform/signals.h"

/*
 * px_guard - what a function of ours runs under that shares more than a stream with others: no signal handler comes
 * between, it is no cancellation point, it is alone in the process, errno stays; no fork happens meanwhile. Signals that are
 * pending already are left to the other threads: to enter and to leave may sleep.
 */
struct px_guard {
	ptt_signal_set mask;
	int cancel;
	int err;
};
void px_guard_enter(struct px_guard *guard);
void px_guard_leave(const struct px_guard *guard);

/* px_guard_fork - the calling thread forks: before it, and after it in parent and child. */
void px_guard_before_fork(void);
void px_guard_after_fork(void);

/* px_guard_reset - in a process that was cloned under the guard and has but one thread: nobody is under it. */
void px_guard_reset(void);

#endif
