/* SPDX-License-Identifier: MIT */
/* parked.h - mutexes and events of CPython 3.13 and 3.14, by the semaphores at which threads wait for them. */
/*
 * A thread that waits for one is parked at a semaphore on its own stack, which is there for this wait alone. Beside it stands
 * what the thread waits for: that is the object of the wait, and of the post that ends it.
 */
#ifndef PTT_PARKED_H
#define PTT_PARKED_H

#include <semaphore.h>

#include "tracer.h"

/* What is behind a semaphore. */
struct ptt_parked {
	const void *object; /* the mutex or event; or the semaphore itself, which is no such one */
	uint16_t kind;	    /* of a mutex or event: a place in catalog/futexes.toml, else 0 */
};

#if PTT_UNWINDS

/* python_parked.c: an interpreter that has them was found. */
extern bool ptt_python_parks HIDDEN;

/* ptt_python_parked_start - look for the interpreter's functions; it is of version 3.@minor. */
void ptt_python_parked_start(unsigned int minor) HIDDEN;

struct ptt_parked ptt_find_parked(const sem_t *sem, const void *site) HIDDEN;
struct ptt_parked ptt_find_unparked(const sem_t *sem, const void *site) HIDDEN;

/* ptt_parked_at - what the calling thread is parked for, or is about to be, at a semaphore. Safe in signal handlers. */
static inline struct ptt_parked ptt_parked_at(const sem_t *sem, const void *site)
{
	return unlikely(ptt_python_parks) ? ptt_find_parked(sem, site) : (struct ptt_parked){.object = sem};
}

/* ptt_unparked_by - what the thread waits for that the post of a semaphore is to wake. Safe in signal handlers. */
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
