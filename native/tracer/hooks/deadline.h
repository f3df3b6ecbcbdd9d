/* SPDX-License-Identifier: MIT */
/* deadline.h - which deadlines the C library takes, for hooks that try before they call a timed routine. */
/*
 * Some timed routines of glibc refuse a bad deadline even where they would not block. A hook that tried first would
 * succeed there, so it asks here and leaves bad ones to the real function.
 */
#ifndef PTT_DEADLINE_H
#define PTT_DEADLINE_H

#include <stdbool.h>
#include <time.h>

/* In place of a clock. */
#define TIMED (-1)   /* the routine's own clock */
#define UNTIMED (-2) /* no deadline at all */

static inline bool ptt_clock_valid(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static inline bool ptt_deadline_valid(clockid_t clock, const struct timespec *deadline)
{
	__asm__("" : "+r"(deadline)); /* may be NULL, whatever its declaration says */
	if (clock != TIMED && !ptt_clock_valid(clock))
		return false;
	return !deadline || (deadline->tv_nsec >= 0 && deadline->tv_nsec < 1000000000);
}

#endif
