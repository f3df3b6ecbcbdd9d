/* SPDX-License-Identifier: MIT */
/* bodies.h - what a routine that may block is asked for, and the calls that generated hooks (plain.c) leave to functions written by hand. */
/*
 * Each function below makes the call as the real function does and reports all that happens in between, but not the routine's _IN and
 * _OUT events. Return: what the real function returns.
 */
#ifndef PTT_BODIES_H
#define PTT_BODIES_H

#include "tracer.h"

/* ------------------------------------------------------------ requests */

/*
 * Some timed routines of glibc refuse a bad deadline even where they would not block. A hook that tried first would succeed there,
 * so it asks here and leaves bad deadlines to the real function.
 */

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

/* ptt_request_is_valid - without a deadline, or with a deadline that the C library accepts. */
static inline bool ptt_request_is_valid(const struct ptt_request *r)
{
	return r->clock == UNTIMED || ptt_deadline_valid(r->clock, r->deadline);
}

/* ------------------------------------------------------------ calls */

int ptt_mutex_take(pthread_mutex_t *mutex, const struct ptt_request *r, void *site) HIDDEN; /* with a deadline */

int ptt_rwlock_read(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;
int ptt_rwlock_write(pthread_rwlock_t *rwlock, const struct ptt_request *r, void *site) HIDDEN;

/* A cancellation point: reports the _OUT event too. */
int ptt_sem_take(sem_t *sem, const struct ptt_request *r, void *site) HIDDEN;

int ptt_mtx_take(mtx_t *mutex, const struct ptt_request *r, void *site) HIDDEN;

/* ptt_error_of_thrd - the error number that a result of <threads.h> stands for. */
int ptt_error_of_thrd(int result) HIDDEN;

/* ------------------------------------------------------------ once: under pthread_once or call_once, for both of their hooks */

/* glibc's control word: bit 1 when the routine has been run, bit 0 while it is being run. */
#define PTT_ONCE_RUNNING 1
#define PTT_ONCE_DONE 2

typedef int ptt_once_function(pthread_once_t *control, void (*routine)(void));

/*
 * ptt_once - call @real, and report which thread runs the routine and which threads wait for it
 * @real: gets @control, and either @routine or a function of the tracer that calls @routine
 */
int ptt_once(ptt_once_function *real, pthread_once_t *control, void (*routine)(void), void *site) HIDDEN;

#endif
