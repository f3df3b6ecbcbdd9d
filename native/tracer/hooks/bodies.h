/* SPDX-License-Identifier: MIT */
/* bodies.h - requests to routines that may block, and the hand-written bodies of generated hooks (plain.c). */
/*
 * Each function below calls the real function and reports all events of the call except the routine's _IN and _OUT
 * events. Return: the result of the real function.
 */
#ifndef PTT_BODIES_H
#define PTT_BODIES_H

#include "tracer.h"

/* ------------------------------------------------------------ requests */

/*
 * Some timed routines of glibc refuse a bad deadline even if they would not block. A hook that tries the lock first
 * would succeed. So hooks check the deadline, and leave bad deadlines to the real function.
 */

/* Values in place of a clock. */
#define TIMED (-1)   /* the routine's own clock */
#define UNTIMED (-2) /* no deadline at all */

/* A request to a routine. */
struct ptt_request {
	clockid_t clock; /* or UNTIMED, TIMED */
	const struct timespec *deadline;
	int routine; /* number of its _IN event, which error events carry; the _OUT event has the next number */
};

static inline bool ptt_clock_valid(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ptt_request_is_timed - does the request have a deadline? */
static inline bool ptt_request_is_timed(const struct ptt_request *r)
{
	return r->clock != UNTIMED;
}

static inline bool ptt_deadline_valid(clockid_t clock, const struct timespec *deadline)
{
	__asm__("" : "+r"(deadline)); /* may be NULL in spite of its declaration */
	if (clock != TIMED && !ptt_clock_valid(clock))
		return false;
	return !deadline || (deadline->tv_nsec >= 0 && deadline->tv_nsec < 1000000000);
}

/* ptt_request_is_valid - true without a deadline, or with a deadline that the C library accepts. */
static inline bool ptt_request_is_valid(const struct ptt_request *r)
{
	return r->clock == UNTIMED || ptt_deadline_valid(r->clock, r->deadline);
}

/* ------------------------------------------------------------ calls */

int ptt_mutex_take(pthread_mutex_t *mutex, const struct ptt_request *r, void *site) HIDDEN; /* with a deadline */

int ptt_rwlock_read(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;
int ptt_rwlock_write(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;

/* A cancellation point, so it also reports the _OUT event. */
int ptt_sem_take(sem_t *sem, const struct ptt_request *r, void *site) HIDDEN;

int ptt_mtx_take(mtx_t *mutex, const struct ptt_request *r, void *site) HIDDEN;

/* ptt_error_of_thrd - the error number for a result of <threads.h>. */
int ptt_error_of_thrd(int result) HIDDEN;

/* ------------------------------------------------------------ once: for the hooks of pthread_once() and call_once() */

/* Bits of glibc's control word: the routine runs; the routine has run. */
#define PTT_ONCE_RUNNING 1
#define PTT_ONCE_DONE 2

typedef int ptt_once_function(pthread_once_t *control, void (*routine)(void));

/*
 * ptt_once - call @real; report the thread that runs the routine, and the threads that wait for it
 * @real: called with @control, and with @routine or a function of the tracer that calls @routine
 */
int ptt_once(ptt_once_function *real, pthread_once_t *control, void (*routine)(void), void *site) HIDDEN;

#endif
