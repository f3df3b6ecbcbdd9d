/* SPDX-License-Identifier: MIT */
/* mutex.c - pthread_mutex_*: types, errors, robustness, protocols. */
#include "case.h"

static long lock(void *m)
{
	return pthread_mutex_lock(m);
}

static long unlock(void *m)
{
	return pthread_mutex_unlock(m);
}

static long trylock(void *m)
{
	return pthread_mutex_trylock(m);
}

static long make_consistent(void *m)
{
	return pthread_mutex_consistent(m);
}

/* The next recursive lock exceeds the maximum. */
static pthread_mutex_t *at_its_limit(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	m->__data.__count = UINT_MAX;
	return m;
}

static pthread_mutex_t *no_mutex(void)
{
	pthread_mutex_t *m = mutex(NORMAL);

	m->__data.__kind = 0x7f;
	return m;
}

static pthread_mutexattr_t *attr_of(int kind)
{
	pthread_mutexattr_t *attr = memory(sizeof(*attr));

	pthread_mutexattr_init(attr);
	pthread_mutexattr_settype(attr, kind & 3);
	if (kind & ROBUST)
		pthread_mutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST);
	if (kind & PROTECT)
		pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_PROTECT);
	return attr;
}

/* A second thread wants the mutex; the longest waiter need not be first, but every waiter gets the mutex. */
static long counter;

static long count_up(void *m)
{
	int i;

	for (i = 0; i < 200; i++) {
		pthread_mutex_lock(m);
		counter++;
		pthread_mutex_unlock(m);
	}
	return 0;
}

static long count_in_turn(pthread_mutex_t *m)
{
	counter = 0;
	meanwhile(count_up, m);
	count_up(m);
	result_of_meanwhile();
	return counter;
}


CASE(pthread_mutex_init, "no attributes", pthread_mutex_init(memory(sizeof(pthread_mutex_t)), NULL))
CASE(pthread_mutex_init, "recursive", pthread_mutex_init(memory(sizeof(pthread_mutex_t)), attr_of(RECURSIVE)))
CASE(pthread_mutex_init, "robust", pthread_mutex_init(memory(sizeof(pthread_mutex_t)), attr_of(ROBUST)))
CASE(pthread_mutex_init, "robust with a ceiling", pthread_mutex_init(memory(sizeof(pthread_mutex_t)), attr_of(ROBUST | PROTECT)))

CASE(pthread_mutex_destroy, "free", pthread_mutex_destroy(mutex(NORMAL)))
CASE(pthread_mutex_destroy, "taken", pthread_mutex_destroy(locked(mutex(NORMAL))))
CASE(pthread_mutex_destroy, "taken by another thread", pthread_mutex_destroy(held(mutex(ERRORCHECK))))
CASE(pthread_mutex_destroy, "robust, orphaned", pthread_mutex_destroy(orphan(mutex(ROBUST))))
CASE(pthread_mutex_destroy, "robust, lost", pthread_mutex_destroy(lost(mutex(ROBUST))))

CASE(pthread_mutex_lock, "normal", pthread_mutex_lock(mutex(NORMAL)))
CASE(pthread_mutex_lock, "recursive", pthread_mutex_lock(mutex(RECURSIVE)))
CASE(pthread_mutex_lock, "recursive, again", pthread_mutex_lock(locked(mutex(RECURSIVE))))
CASE(pthread_mutex_lock, "recursive, once too often", pthread_mutex_lock(at_its_limit(mutex(RECURSIVE))))
CASE(pthread_mutex_lock, "errorcheck", pthread_mutex_lock(mutex(ERRORCHECK)))
CASE(pthread_mutex_lock, "errorcheck, again", pthread_mutex_lock(locked(mutex(ERRORCHECK))))
CASE(pthread_mutex_lock, "adaptive", pthread_mutex_lock(mutex(ADAPTIVE)))
CASE(pthread_mutex_lock, "process-shared", pthread_mutex_lock(mutex(SHARED)))
CASE(pthread_mutex_lock, "no mutex", pthread_mutex_lock(no_mutex()))
CASE(pthread_mutex_lock, "robust", pthread_mutex_lock(mutex(ROBUST)))
CASE(pthread_mutex_lock, "robust, orphaned", pthread_mutex_lock(orphan(mutex(ROBUST))))
CASE(pthread_mutex_lock, "robust, lost", pthread_mutex_lock(lost(mutex(ROBUST))))
CASE(pthread_mutex_lock, "robust errorcheck, again", pthread_mutex_lock(locked(mutex(ROBUST | ERRORCHECK))))
CASE(pthread_mutex_lock, "robust recursive, again", pthread_mutex_lock(locked(mutex(ROBUST | RECURSIVE))))
CASE(pthread_mutex_lock, "robust recursive, once too often", pthread_mutex_lock(at_its_limit(mutex(ROBUST | RECURSIVE))))
CASE(pthread_mutex_lock, "robust recursive, orphaned", pthread_mutex_lock(orphan(mutex(ROBUST | RECURSIVE))))
CASE(pthread_mutex_lock, "inheritance", pthread_mutex_lock(mutex(INHERIT)))
CASE(pthread_mutex_lock, "inheritance, errorcheck, again", pthread_mutex_lock(locked(mutex(INHERIT | ERRORCHECK))))
CASE(pthread_mutex_lock, "inheritance, recursive, again", pthread_mutex_lock(locked(mutex(INHERIT | RECURSIVE))))
CASE(pthread_mutex_lock, "inheritance, robust, orphaned", pthread_mutex_lock(orphan(mutex(INHERIT | ROBUST))))
CASE(pthread_mutex_lock, "inheritance, robust, lost", pthread_mutex_lock(lost(mutex(INHERIT | ROBUST))))
CASE(pthread_mutex_lock, "protection", pthread_mutex_lock(mutex(PROTECT)))
CASE(pthread_mutex_lock, "protection, errorcheck, again", pthread_mutex_lock(locked(mutex(PROTECT | ERRORCHECK))))
CASE(pthread_mutex_lock, "protection, recursive, again", pthread_mutex_lock(locked(mutex(PROTECT | RECURSIVE))))
/* Priority protection is for threads with a real-time policy. */
static long with_ceiling(function *what, pthread_mutex_t *m, int ceiling)
{
	struct sched_param param = {.sched_priority = 2}, normal = {0};
	int old;
	long result;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return -1;
	pthread_mutex_setprioceiling(m, ceiling, &old);
	result = what(m);
	if (result == 0)
		pthread_mutex_unlock(m);
	pthread_setschedparam(pthread_self(), SCHED_OTHER, &normal);
	errno = 777;
	return result;
}

CASE(pthread_mutex_lock, "protection, high enough", with_ceiling(lock, mutex(PROTECT), 3))
CASE(pthread_mutex_lock, "protection, too low", with_ceiling(lock, mutex(PROTECT), 1))
CASE(pthread_mutex_trylock, "protection, high enough", with_ceiling(trylock, mutex(PROTECT), 3))
CASE(pthread_mutex_trylock, "protection, too low", with_ceiling(trylock, mutex(PROTECT), 1))
CASE(pthread_mutex_lock, "normal, two threads", count_in_turn(mutex(NORMAL)))
CASE(pthread_mutex_lock, "recursive, two threads", count_in_turn(mutex(RECURSIVE)))
CASE(pthread_mutex_lock, "errorcheck, two threads", count_in_turn(mutex(ERRORCHECK)))
CASE(pthread_mutex_lock, "adaptive, two threads", count_in_turn(mutex(ADAPTIVE)))
CASE(pthread_mutex_lock, "robust, two threads", count_in_turn(mutex(ROBUST)))
CASE(pthread_mutex_lock, "inheritance, two threads", count_in_turn(mutex(INHERIT)))
CASE(pthread_mutex_lock, "inheritance, robust, two threads", count_in_turn(mutex(INHERIT | ROBUST)))
CASE_PENDING(pthread_mutex_lock, "cancelled before", pthread_mutex_lock(mutex(NORMAL)))
CASE_CANCELLED(pthread_mutex_lock, "cancelled while it waits", pthread_mutex_lock(held(mutex(NORMAL))))
CASE_SIGNALLED(pthread_mutex_lock, "signalled while it waits", pthread_mutex_lock(held(mutex(NORMAL))))
CASE_SIGNALLED(pthread_mutex_lock, "robust, signalled while it waits", pthread_mutex_lock(held(mutex(ROBUST))))
CASE_SIGNALLED(pthread_mutex_lock, "inheritance, signalled while it waits", pthread_mutex_lock(held(mutex(INHERIT))))

CASE(pthread_mutex_trylock, "normal", pthread_mutex_trylock(mutex(NORMAL)))
CASE(pthread_mutex_trylock, "normal, again", pthread_mutex_trylock(locked(mutex(NORMAL))))
CASE(pthread_mutex_trylock, "recursive, again", pthread_mutex_trylock(locked(mutex(RECURSIVE))))
CASE(pthread_mutex_trylock, "recursive, once too often", pthread_mutex_trylock(at_its_limit(mutex(RECURSIVE))))
CASE(pthread_mutex_trylock, "errorcheck, again", pthread_mutex_trylock(locked(mutex(ERRORCHECK))))
CASE(pthread_mutex_trylock, "adaptive, held", pthread_mutex_trylock(held(mutex(ADAPTIVE))))
CASE(pthread_mutex_trylock, "held", pthread_mutex_trylock(held(mutex(NORMAL))))
CASE(pthread_mutex_trylock, "recursive, held", pthread_mutex_trylock(held(mutex(RECURSIVE))))
CASE(pthread_mutex_trylock, "robust, held", pthread_mutex_trylock(held(mutex(ROBUST))))
CASE(pthread_mutex_trylock, "robust, orphaned", pthread_mutex_trylock(orphan(mutex(ROBUST))))
CASE(pthread_mutex_trylock, "robust, lost", pthread_mutex_trylock(lost(mutex(ROBUST))))
CASE(pthread_mutex_trylock, "robust errorcheck, again", pthread_mutex_trylock(locked(mutex(ROBUST | ERRORCHECK))))
CASE(pthread_mutex_trylock, "inheritance, held", pthread_mutex_trylock(held(mutex(INHERIT))))
CASE(pthread_mutex_trylock, "inheritance, robust, orphaned", pthread_mutex_trylock(orphan(mutex(INHERIT | ROBUST))))
CASE(pthread_mutex_trylock, "protection, held", pthread_mutex_trylock(held(mutex(PROTECT))))
CASE(pthread_mutex_trylock, "no mutex", pthread_mutex_trylock(no_mutex()))
CASE_PENDING(pthread_mutex_trylock, "cancelled before", pthread_mutex_trylock(mutex(NORMAL)))

CASE(pthread_mutex_timedlock, "free", pthread_mutex_timedlock(mutex(NORMAL), later(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "free, too late", pthread_mutex_timedlock(mutex(NORMAL), past()))
CASE(pthread_mutex_timedlock, "free, no time", pthread_mutex_timedlock(mutex(NORMAL), no_time()))
CASE(pthread_mutex_timedlock, "held, too late", pthread_mutex_timedlock(held(mutex(NORMAL)), past()))
CASE(pthread_mutex_timedlock, "held, before the epoch", pthread_mutex_timedlock(held(mutex(NORMAL)), before_epoch()))
CASE(pthread_mutex_timedlock, "held, no time", pthread_mutex_timedlock(held(mutex(NORMAL)), no_time()))
CASE(pthread_mutex_timedlock, "held, negative time", pthread_mutex_timedlock(held(mutex(NORMAL)), negative()))
CASE(pthread_mutex_timedlock, "held, in vain", pthread_mutex_timedlock(held(mutex(NORMAL)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "normal, again", pthread_mutex_timedlock(locked(mutex(NORMAL)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "recursive, again", pthread_mutex_timedlock(locked(mutex(RECURSIVE)), past()))
CASE(pthread_mutex_timedlock, "recursive, once too often", pthread_mutex_timedlock(at_its_limit(mutex(RECURSIVE)), past()))
CASE(pthread_mutex_timedlock, "errorcheck, again", pthread_mutex_timedlock(locked(mutex(ERRORCHECK)), past()))
CASE(pthread_mutex_timedlock, "adaptive, in vain", pthread_mutex_timedlock(held(mutex(ADAPTIVE)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "robust, in vain", pthread_mutex_timedlock(held(mutex(ROBUST)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "robust, no time", pthread_mutex_timedlock(held(mutex(ROBUST)), no_time()))
CASE(pthread_mutex_timedlock, "robust, orphaned", pthread_mutex_timedlock(orphan(mutex(ROBUST)), past()))
CASE(pthread_mutex_timedlock, "robust, lost", pthread_mutex_timedlock(lost(mutex(ROBUST)), past()))
CASE(pthread_mutex_timedlock, "inheritance, in vain", pthread_mutex_timedlock(held(mutex(INHERIT)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "inheritance, too late", pthread_mutex_timedlock(held(mutex(INHERIT)), past()))
CASE(pthread_mutex_timedlock, "inheritance, no time", pthread_mutex_timedlock(held(mutex(INHERIT)), no_time()))
CASE(pthread_mutex_timedlock, "inheritance, free, no time", pthread_mutex_timedlock(mutex(INHERIT), no_time()))
CASE(pthread_mutex_timedlock, "inheritance, errorcheck, again", pthread_mutex_timedlock(locked(mutex(INHERIT | ERRORCHECK)), past()))
CASE(pthread_mutex_timedlock, "protection, in vain", pthread_mutex_timedlock(held(mutex(PROTECT)), soon(CLOCK_REALTIME)))
CASE(pthread_mutex_timedlock, "protection, free, no time", pthread_mutex_timedlock(mutex(PROTECT), no_time()))
CASE(pthread_mutex_timedlock, "no mutex", pthread_mutex_timedlock(no_mutex(), past()))
CASE_PENDING(pthread_mutex_timedlock, "cancelled before", pthread_mutex_timedlock(mutex(NORMAL), past()))
CASE_CANCELLED(pthread_mutex_timedlock, "cancelled while it waits", pthread_mutex_timedlock(held(mutex(NORMAL)), later(CLOCK_REALTIME)))
CASE_SIGNALLED(pthread_mutex_timedlock, "signalled while it waits", pthread_mutex_timedlock(held(mutex(NORMAL)), later(CLOCK_REALTIME)))
CASE_SIGNALLED(pthread_mutex_timedlock, "inheritance, signalled", pthread_mutex_timedlock(held(mutex(INHERIT)), later(CLOCK_REALTIME)))

CASE(pthread_mutex_clocklock, "free", pthread_mutex_clocklock(mutex(NORMAL), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))
CASE(pthread_mutex_clocklock, "free, too late", pthread_mutex_clocklock(mutex(NORMAL), CLOCK_MONOTONIC, past()))
CASE(pthread_mutex_clocklock, "in vain", pthread_mutex_clocklock(held(mutex(NORMAL)), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(pthread_mutex_clocklock, "in vain, real time", pthread_mutex_clocklock(held(mutex(NORMAL)), CLOCK_REALTIME, soon(CLOCK_REALTIME)))
CASE(pthread_mutex_clocklock, "free, strange clock", pthread_mutex_clocklock(mutex(NORMAL), CLOCK_PROCESS_CPUTIME_ID, past()))
CASE(pthread_mutex_clocklock, "held, strange clock", pthread_mutex_clocklock(held(mutex(NORMAL)), CLOCK_PROCESS_CPUTIME_ID, past()))
CASE(pthread_mutex_clocklock, "held, no time", pthread_mutex_clocklock(held(mutex(NORMAL)), CLOCK_MONOTONIC, no_time()))
CASE(pthread_mutex_clocklock, "errorcheck, again", pthread_mutex_clocklock(locked(mutex(ERRORCHECK)), CLOCK_MONOTONIC, past()))
CASE(pthread_mutex_clocklock, "robust, orphaned", pthread_mutex_clocklock(orphan(mutex(ROBUST)), CLOCK_MONOTONIC, past()))
CASE(pthread_mutex_clocklock, "inheritance, in vain", pthread_mutex_clocklock(held(mutex(INHERIT)), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)))
CASE(pthread_mutex_clocklock, "inheritance, real time", pthread_mutex_clocklock(held(mutex(INHERIT)), CLOCK_REALTIME, soon(CLOCK_REALTIME)))
CASE_CANCELLED(pthread_mutex_clocklock, "cancelled while it waits", pthread_mutex_clocklock(held(mutex(NORMAL)), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))

CASE(pthread_mutex_unlock, "taken", pthread_mutex_unlock(locked(mutex(NORMAL))))
CASE(pthread_mutex_unlock, "normal, free", pthread_mutex_unlock(mutex(NORMAL)))
CASE(pthread_mutex_unlock, "recursive, free", pthread_mutex_unlock(mutex(RECURSIVE)))
CASE(pthread_mutex_unlock, "errorcheck, free", pthread_mutex_unlock(mutex(ERRORCHECK)))
CASE(pthread_mutex_unlock, "robust, free", pthread_mutex_unlock(mutex(ROBUST)))
CASE(pthread_mutex_unlock, "inheritance, free", pthread_mutex_unlock(mutex(INHERIT)))
CASE(pthread_mutex_unlock, "recursive, held", pthread_mutex_unlock(held(mutex(RECURSIVE))))
CASE(pthread_mutex_unlock, "errorcheck, held", pthread_mutex_unlock(held(mutex(ERRORCHECK))))
CASE(pthread_mutex_unlock, "robust, held", pthread_mutex_unlock(held(mutex(ROBUST))))
CASE(pthread_mutex_unlock, "inheritance, errorcheck, held", pthread_mutex_unlock(held(mutex(INHERIT | ERRORCHECK))))
CASE(pthread_mutex_unlock, "protection", pthread_mutex_unlock(locked(mutex(PROTECT))))
CASE(pthread_mutex_unlock, "protection, errorcheck, held", pthread_mutex_unlock(held(mutex(PROTECT | ERRORCHECK))))
CASE(pthread_mutex_unlock, "robust, lost", pthread_mutex_unlock(lost(mutex(ROBUST))))
CASE(pthread_mutex_unlock, "no mutex", pthread_mutex_unlock(no_mutex()))
static pthread_mutex_t *taken_twice;
CASE(pthread_mutex_unlock, "recursive, half way", taken_twice = locked(locked(mutex(RECURSIVE))), both(unlock(taken_twice), elsewhere(trylock, taken_twice)))
CASE(pthread_mutex_unlock, "recursive, all the way", both(unlock(taken_twice), elsewhere(trylock, taken_twice)))
CASE_PENDING(pthread_mutex_unlock, "cancelled before", pthread_mutex_unlock(locked(mutex(NORMAL))))

CASE(pthread_mutex_consistent, "not robust", pthread_mutex_consistent(locked(mutex(NORMAL))))
CASE(pthread_mutex_consistent, "nothing wrong", pthread_mutex_consistent(locked(mutex(ROBUST))))
CASE(pthread_mutex_consistent, "lost", pthread_mutex_consistent(lost(mutex(ROBUST))))
static pthread_mutex_t *mended;
CASE(pthread_mutex_consistent, "orphaned", mended = orphan(mutex(ROBUST)), both(lock(mended), make_consistent(mended)))
CASE(pthread_mutex_consistent, "usable afterwards", both(unlock(mended), lock(mended)))
CASE(pthread_mutex_consistent, "inheritance, orphaned", mended = orphan(mutex(ROBUST | INHERIT)), both(lock(mended), make_consistent(mended)))
CASE(pthread_mutex_consistent, "inheritance, usable afterwards", both(unlock(mended), lock(mended)))

static long ceiling(pthread_mutex_t *m, int wanted)
{
	int old = -1, result = pthread_mutex_setprioceiling(m, wanted, &old);

	return result ? result : old;
}

CASE(pthread_mutex_setprioceiling, "no ceiling", ceiling(mutex(NORMAL), 5))
CASE(pthread_mutex_setprioceiling, "out of range", ceiling(mutex(PROTECT), 1000))
CASE(pthread_mutex_setprioceiling, "in range", ceiling(mutex(PROTECT), 2) > 0)

CASE(pthread_mutex_lock, "in a child, held by its parent", child(trylock, locked(mutex(SHARED))))
static pthread_mutex_t *left_by_child;
CASE(pthread_mutex_lock, "left by a child", left_by_child = mutex(SHARED | ROBUST), both(child(lock, left_by_child), lock(left_by_child) == EOWNERDEAD))
CASE(pthread_mutex_lock, "errorcheck, unlocked by a child", child(unlock, locked(mutex(SHARED | ERRORCHECK))))
