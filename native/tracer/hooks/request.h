/* SPDX-License-Identifier: MIT */
/* request.h - what a routine that may block is asked for, and which deadlines the C library accepts. */
/*
 * Some timed routines of glibc refuse a bad deadline even where they would not block. A hook that tried first would
 * succeed there, so it asks here and leaves bad ones to the real function.
 */
#ifndef PTT_REQUEST_H
#define PTT_REQUEST_H

#include <stdbool.h>
#include <time.h>

/* In place of a clock. */
#define TIMED (-1)   /* the routine's own clock */
#define UNTIMED (-2) /* no deadline at all */

/* What a routine is asked for. */
struct ptt_request {
	clockid_t clock; /* or UNTIMED, TIMED */
	const struct timespec *deadline;
	int routine; /* number of its _IN event, which names it in error events; _OUT is the next */
};

static inline bool ptt_clock_valid(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ptt_request_is_timed - the routine gives up at some time. */
static inline bool ptt_request_is_timed(const struct ptt_request *r)
{
	return r->clock != UNTIMED;
}

static inline bool ptt_deadline_valid(clockid_t clock, const struct timespec *deadline)
{
	__asm__("" : "+r"(deadline)); /* may be NULL, whatever its declaration says */
	if (clock != TIMED && !ptt_clock_valid(clock))
		return false;
	return !deadline || (deadline->tv_nsec >= 0 && deadline->tv_nsec < 1000000000);
}

/* ptt_request_is_valid - without a deadline, or with one that the C library accepts. */
static inline bool ptt_request_is_valid(const struct ptt_request *r)
{
	return r->clock == UNTIMED || ptt_deadline_valid(r->clock, r->deadline);
}

#endif
