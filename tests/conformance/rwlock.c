/* SPDX-License-Identifier: MIT */
/* rwlock.c - pthread_rwlock_*: readers, writers, preferences, deadlines. */
#include "case.h"

#define READERS PTHREAD_RWLOCK_PREFER_READER_NP
#define WRITERS PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP

static long rdlock(void *l)
{
	return pthread_rwlock_rdlock(l);
}

static long tryrdlock(void *l)
{
	return pthread_rwlock_tryrdlock(l);
}

static long trywrlock(void *l)
{
	return pthread_rwlock_trywrlock(l);
}

static long wrlock_unlock(void *l)
{
	return both(pthread_rwlock_wrlock(l), pthread_rwlock_unlock(l));
}

/* A reader holds the lock, and a writer waits. */
static pthread_rwlock_t *wanted_by_writer(pthread_rwlock_t *l)
{
	read_held(l);
	meanwhile(wrlock_unlock, l);
	until_it_waits();
	return l;
}

/* The maximum number of readers. */
static pthread_rwlock_t *crowded(void)
{
	pthread_rwlock_t *l = rwlock(READERS);

	pthread_rwlock_rdlock(l);
	l->__data.__readers |= ~7u;
	return l;
}

CASE(pthread_rwlock_init, "no attributes", pthread_rwlock_init(memory(sizeof(pthread_rwlock_t)), NULL))
CASE(pthread_rwlock_destroy, "free", pthread_rwlock_destroy(rwlock(READERS)))

CASE(pthread_rwlock_rdlock, "free", pthread_rwlock_rdlock(rwlock(READERS)))
CASE(pthread_rwlock_rdlock, "again", pthread_rwlock_rdlock(read_locked(rwlock(READERS))))
CASE(pthread_rwlock_rdlock, "read by another", pthread_rwlock_rdlock(read_held(rwlock(READERS))))
CASE(pthread_rwlock_rdlock, "written by itself", pthread_rwlock_rdlock(write_locked(rwlock(READERS))))
CASE(pthread_rwlock_rdlock, "written by itself, writers first", pthread_rwlock_rdlock(write_locked(rwlock(WRITERS))))
CASE(pthread_rwlock_rdlock, "too many readers", pthread_rwlock_rdlock(crowded()))
CASE(pthread_rwlock_rdlock, "read in a child", child(tryrdlock, read_locked(rwlock(READERS))))
CASE_PENDING(pthread_rwlock_rdlock, "cancelled before", pthread_rwlock_rdlock(rwlock(READERS)))
CASE_CANCELLED(pthread_rwlock_rdlock, "cancelled while it waits", pthread_rwlock_rdlock(write_held(rwlock(READERS))))
CASE_SIGNALLED(pthread_rwlock_rdlock, "signalled while it waits", pthread_rwlock_rdlock(write_held(rwlock(READERS))))

CASE(pthread_rwlock_wrlock, "free", pthread_rwlock_wrlock(rwlock(READERS)))
CASE(pthread_rwlock_wrlock, "written by itself", pthread_rwlock_wrlock(write_locked(rwlock(READERS))))
CASE(pthread_rwlock_wrlock, "written by itself, writers first", pthread_rwlock_wrlock(write_locked(rwlock(WRITERS))))
CASE(pthread_rwlock_wrlock, "written in a child", child(trywrlock, write_locked(rwlock(READERS))))
CASE_PENDING(pthread_rwlock_wrlock, "cancelled before", pthread_rwlock_wrlock(rwlock(READERS)))
CASE_CANCELLED(pthread_rwlock_wrlock, "cancelled while it waits", pthread_rwlock_wrlock(read_held(rwlock(READERS))))
CASE_CANCELLED(pthread_rwlock_wrlock, "written by another, cancelled", pthread_rwlock_wrlock(write_held(rwlock(WRITERS))))
CASE_SIGNALLED(pthread_rwlock_wrlock, "signalled while it waits", pthread_rwlock_wrlock(read_held(rwlock(READERS))))

CASE(pthread_rwlock_tryrdlock, "free", pthread_rwlock_tryrdlock(rwlock(READERS)))
CASE(pthread_rwlock_tryrdlock, "read by another", pthread_rwlock_tryrdlock(read_held(rwlock(READERS))))
CASE(pthread_rwlock_tryrdlock, "written by another", pthread_rwlock_tryrdlock(write_held(rwlock(READERS))))
CASE(pthread_rwlock_tryrdlock, "written by itself", pthread_rwlock_tryrdlock(write_locked(rwlock(READERS))))
CASE(pthread_rwlock_tryrdlock, "too many readers", pthread_rwlock_tryrdlock(crowded()))
static pthread_rwlock_t *wanted;
CASE(pthread_rwlock_tryrdlock, "readers first, a writer waits", wanted = wanted_by_writer(rwlock(READERS)), both(pthread_rwlock_tryrdlock(wanted), pthread_rwlock_unlock(wanted)))
CASE(pthread_rwlock_tryrdlock, "writers first, one waits", pthread_rwlock_tryrdlock(wanted_by_writer(rwlock(WRITERS))))

CASE(pthread_rwlock_trywrlock, "free", pthread_rwlock_trywrlock(rwlock(READERS)))
CASE(pthread_rwlock_trywrlock, "read by another", pthread_rwlock_trywrlock(read_held(rwlock(READERS))))
CASE(pthread_rwlock_trywrlock, "read by itself", pthread_rwlock_trywrlock(read_locked(rwlock(READERS))))
CASE(pthread_rwlock_trywrlock, "written by another", pthread_rwlock_trywrlock(write_held(rwlock(READERS))))
CASE(pthread_rwlock_trywrlock, "written by itself", pthread_rwlock_trywrlock(write_locked(rwlock(WRITERS))))


CASE(pthread_rwlock_timedrdlock, "free, too late", pthread_rwlock_timedrdlock(rwlock(READERS), past()))
CASE(pthread_rwlock_timedrdlock, "free, no time", pthread_rwlock_timedrdlock(rwlock(READERS), no_time()))
CASE(pthread_rwlock_timedrdlock, "free, negative time", pthread_rwlock_timedrdlock(rwlock(READERS), negative()))
CASE(pthread_rwlock_timedrdlock, "held, too late", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), past()))
CASE(pthread_rwlock_timedrdlock, "held, before the epoch", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), before_epoch()))
CASE(pthread_rwlock_timedrdlock, "held, no time", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), no_time()))
CASE(pthread_rwlock_timedrdlock, "held, in vain", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), soon(CLOCK_REALTIME)))
CASE(pthread_rwlock_timedrdlock, "written by itself", pthread_rwlock_timedrdlock(write_locked(rwlock(READERS)), past()))
CASE(pthread_rwlock_timedrdlock, "too many readers", pthread_rwlock_timedrdlock(crowded(), past()))
CASE_CANCELLED(pthread_rwlock_timedrdlock, "cancelled while it waits", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), later(CLOCK_REALTIME)))
CASE_SIGNALLED(pthread_rwlock_timedrdlock, "signalled while it waits", pthread_rwlock_timedrdlock(write_held(rwlock(READERS)), later(CLOCK_REALTIME)))

CASE(pthread_rwlock_timedwrlock, "free, too late", pthread_rwlock_timedwrlock(rwlock(READERS), past()))
CASE(pthread_rwlock_timedwrlock, "free, no time", pthread_rwlock_timedwrlock(rwlock(READERS), no_time()))
CASE(pthread_rwlock_timedwrlock, "read, in vain", pthread_rwlock_timedwrlock(read_held(rwlock(READERS)), soon(CLOCK_REALTIME)))
CASE(pthread_rwlock_timedwrlock, "written, in vain", pthread_rwlock_timedwrlock(write_held(rwlock(WRITERS)), soon(CLOCK_REALTIME)))
CASE(pthread_rwlock_timedwrlock, "read, too late", pthread_rwlock_timedwrlock(read_held(rwlock(READERS)), past()))
CASE(pthread_rwlock_timedwrlock, "read, no time", pthread_rwlock_timedwrlock(read_held(rwlock(READERS)), no_time()))
CASE(pthread_rwlock_timedwrlock, "read by itself, too late", pthread_rwlock_timedwrlock(read_locked(rwlock(READERS)), past()))
CASE(pthread_rwlock_timedwrlock, "written by itself", pthread_rwlock_timedwrlock(write_locked(rwlock(READERS)), past()))
CASE_CANCELLED(pthread_rwlock_timedwrlock, "cancelled while it waits", pthread_rwlock_timedwrlock(read_held(rwlock(READERS)), later(CLOCK_REALTIME)))

CASE(pthread_rwlock_clockrdlock, "free, too late", pthread_rwlock_clockrdlock(rwlock(READERS), CLOCK_MONOTONIC, past()))
CASE(pthread_rwlock_clockrdlock, "free, strange clock", pthread_rwlock_clockrdlock(rwlock(READERS), CLOCK_THREAD_CPUTIME_ID, past()))
CASE(pthread_rwlock_clockrdlock, "held, strange clock", pthread_rwlock_clockrdlock(write_held(rwlock(READERS)), CLOCK_THREAD_CPUTIME_ID, past()))
CASE(pthread_rwlock_clockrdlock, "free, no time", pthread_rwlock_clockrdlock(rwlock(READERS), CLOCK_MONOTONIC, no_time()))
CASE(pthread_rwlock_clockrdlock, "held, in vain", pthread_rwlock_clockrdlock(write_held(rwlock(READERS)), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(pthread_rwlock_clockrdlock, "held, in vain, real time", pthread_rwlock_clockrdlock(write_held(rwlock(READERS)), CLOCK_REALTIME, soon(CLOCK_REALTIME)))

CASE(pthread_rwlock_clockwrlock, "free, too late", pthread_rwlock_clockwrlock(rwlock(READERS), CLOCK_MONOTONIC, past()))
CASE(pthread_rwlock_clockwrlock, "free, strange clock", pthread_rwlock_clockwrlock(rwlock(READERS), CLOCK_THREAD_CPUTIME_ID, past()))
CASE(pthread_rwlock_clockwrlock, "free, no time", pthread_rwlock_clockwrlock(rwlock(READERS), CLOCK_MONOTONIC, no_time()))
CASE(pthread_rwlock_clockwrlock, "held, in vain", pthread_rwlock_clockwrlock(read_held(rwlock(READERS)), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(pthread_rwlock_clockwrlock, "written by itself", pthread_rwlock_clockwrlock(write_locked(rwlock(READERS)), CLOCK_MONOTONIC, past()))

CASE(pthread_rwlock_unlock, "read", pthread_rwlock_unlock(read_locked(rwlock(READERS))))
CASE(pthread_rwlock_unlock, "written", pthread_rwlock_unlock(write_locked(rwlock(READERS))))
static pthread_rwlock_t *read_twice;
CASE(pthread_rwlock_unlock, "read twice, half way", read_twice = read_locked(read_locked(rwlock(READERS))), both(pthread_rwlock_unlock(read_twice), elsewhere(trywrlock, read_twice)))
CASE(pthread_rwlock_unlock, "read twice, all the way", both(pthread_rwlock_unlock(read_twice), elsewhere(trywrlock, read_twice)))
CASE(pthread_rwlock_unlock, "free for a reader elsewhere", read_twice = write_locked(rwlock(WRITERS)), both(pthread_rwlock_unlock(read_twice), elsewhere(rdlock, read_twice)))
CASE_PENDING(pthread_rwlock_unlock, "cancelled before", pthread_rwlock_unlock(write_locked(rwlock(READERS))))
