/* SPDX-License-Identifier: MIT */
/* parked.h - the mutexes and events of CPython 3.13 to 3.15 behind the semaphores of parked threads. */
/*
 * A thread that waits for such a mutex or event parks at a semaphore on its own stack, which lives for this wait
 * only. The address of the mutex or event stands beside the semaphore. It is the object of the wait, and of the post
 * that ends the wait.
 */
#ifndef PTT_PARKED_H
#define PTT_PARKED_H

#include <semaphore.h>

#include "tracer.h"

/* The mutex or event behind a semaphore. */
struct ptt_parked {
	const void *object; /* the mutex or event; for other semaphores, the semaphore itself */
	uint16_t kind;	    /* of the mutex or event: an index in catalog/futexes.toml; else 0 */
};

#if PTT_UNWINDS

/* python_parked.c: the process has an interpreter that parks threads. */
extern bool ptt_python_parks HIDDEN;

/* ptt_python_parked_start - find the functions of an interpreter of a known version. */
void ptt_python_parked_start(void) HIDDEN;

struct ptt_parked ptt_find_parked(const sem_t *sem, const void *site) HIDDEN;
struct ptt_parked ptt_find_unparked(const sem_t *sem, const void *site) HIDDEN;

/* ptt_parked_at - the mutex or event that the calling thread waits for while it parks at a semaphore. Safe in signal handlers. */
static inline struct ptt_parked ptt_parked_at(const sem_t *sem, const void *site)
{
	return unlikely(ptt_python_parks) ? ptt_find_parked(sem, site) : (struct ptt_parked){.object = sem};
}

/* ptt_unparked_by - the mutex or event of the thread that the post of a semaphore wakes. Safe in signal handlers. */
static inline struct ptt_parked ptt_unparked_by(const sem_t *sem, const void *site)
{
	return unlikely(ptt_python_parks) ? ptt_find_unparked(sem, site) : (struct ptt_parked){.object = sem};
}

#else

static inline struct ptt_parked ptt_parked_at(const sem_t *sem, const void *site)
{
	(void)site;
	return (struct ptt_parked){.object = sem};
}

static inline struct ptt_parked ptt_unparked_by(const sem_t *sem, const void *site)
{
	return ptt_parked_at(sem, site);
}

#endif
#endif
