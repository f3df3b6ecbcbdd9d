/* SPDX-License-Identifier: MIT */
/* guard.c - lets one thread of the process in at a time, without signals, cancellation or fork meanwhile. */
#include "traced.h"

#include <errno.h>

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;

void px_guard_enter(struct px_guard *guard)
{
	guard->err = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
	ptt_block_signals(&guard->mask);
	pthread_mutex_lock(&guard_lock);
}

void px_guard_leave(const struct px_guard *guard)
{
	int ignored;

	pthread_mutex_unlock(&guard_lock);
	ptt_restore_signals(&guard->mask);
	pthread_setcancelstate(guard->cancel, &ignored);
	errno = guard->err;
}

void px_guard_before_fork(void)
{
	pthread_mutex_lock(&guard_lock);
}

void px_guard_after_fork(void)
{
	pthread_mutex_unlock(&guard_lock);
}

void px_guard_reset(void)
{
	pthread_mutex_init(&guard_lock, NULL);
}
