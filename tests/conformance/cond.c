/* SPDX-License-Identifier: MIT */
/* cond.c - pthread_cond_*: waits with and without deadline, the state of the mutex afterwards, and which threads are woken. */
#include "case.h"

static pthread_mutex_t *used;
static pthread_cond_t *waited_on;

static pthread_mutex_t *use(pthread_mutex_t *m)
{
	return used = m;
}

static long is_held(void *m)
{
	return pthread_mutex_trylock(m) != 0;
}

/* The result of a wait, and whether the mutex is held after it. */
static long then_held(int result)
{
	int before = errno;
	long held = elsewhere(is_held, used);

	errno = before;
	return both(result, held);
}

/* ------------------------------------------------------------ waking */

static int waiting, woken;

static long wait_once(void *c)
{
	pthread_mutex_lock(used);
	waiting++;
	pthread_cond_wait(c, used);
	woken++;
	pthread_mutex_unlock(used);
	return 0;
}

/* @count threads that wait, each asleep or about to sleep. */
static pthread_cond_t *with_waiters(pthread_cond_t *c, int count)
{
	int i, seen = 0;

	waiting = woken = 0;
	use(mutex(NORMAL));
	for (i = 0; i < count; i++)
		meanwhile(wait_once, c);
	while (seen < count) {
		nap(1);
		pthread_mutex_lock(used);
		seen = waiting;
		pthread_mutex_unlock(used);
	}
	return waited_on = c;
}

/* The number of woken threads, as soon as it is what it should be. */
static long woken_now(int should)
{
	int seen = 0;

	while (seen < should) {
		nap(1);
		pthread_mutex_lock(used);
		seen = woken;
		pthread_mutex_unlock(used);
	}
	pthread_cond_broadcast(waited_on);
	return seen;
}

static long signal_under_lock(void *c)
{
	pthread_mutex_lock(used);
	pthread_cond_signal(c);
	pthread_mutex_unlock(used);
	return 0;
}

static long wait_and_be_signalled(pthread_cond_t *c, pthread_mutex_t *m)
{
	use(m);
	pthread_mutex_lock(m);
	meanwhile(signal_under_lock, c);
	return then_held(pthread_cond_wait(c, m));
}

static pid_t signalling_child(pthread_cond_t *c)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)signal_under_lock(c));
	return pid;
}

static long wait_for_child(pthread_cond_t *c, pthread_mutex_t *m)
{
	use(m);
	pthread_mutex_lock(m);
	signalling_child(c);
	return pthread_cond_wait(c, m);
}

/* A thread that ends takes the condition's mutex and keeps it. */
static long die_with_it(void *c)
{
	pthread_mutex_lock(used);
	pthread_cond_signal(c);
	return 0;
}

static long wait_and_inherit(pthread_cond_t *c, pthread_mutex_t *m)
{
	use(m);
	pthread_mutex_lock(m);
	meanwhile(die_with_it, c);
	return pthread_cond_wait(c, m);
}

static pthread_condattr_t *attr_of(clockid_t clock)
{
	pthread_condattr_t *attr = memory(sizeof(*attr));

	pthread_condattr_init(attr);
	pthread_condattr_setclock(attr, clock);
	return attr;
}

CASE(pthread_cond_init, "no attributes", pthread_cond_init(memory(sizeof(pthread_cond_t)), NULL))
CASE(pthread_cond_init, "monotonic", pthread_cond_init(memory(sizeof(pthread_cond_t)), attr_of(CLOCK_MONOTONIC)))
CASE(pthread_cond_init, "strange clock", pthread_condattr_setclock(attr_of(CLOCK_REALTIME), CLOCK_PROCESS_CPUTIME_ID))

CASE(pthread_cond_destroy, "unused", pthread_cond_destroy(cond(CLOCK_REALTIME)))
CASE(pthread_cond_destroy, "just signalled", pthread_cond_signal(with_waiters(cond(CLOCK_REALTIME), 1)), pthread_cond_destroy(waited_on))

CASE(pthread_cond_wait, "signalled", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(NORMAL)))
CASE(pthread_cond_wait, "recursive mutex", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(RECURSIVE)))
CASE(pthread_cond_wait, "errorcheck mutex", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(ERRORCHECK)))
CASE(pthread_cond_wait, "adaptive mutex", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(ADAPTIVE)))
CASE(pthread_cond_wait, "robust mutex", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(ROBUST)))
CASE(pthread_cond_wait, "inheritance", wait_and_be_signalled(cond(CLOCK_REALTIME), mutex(INHERIT)))
CASE(pthread_cond_wait, "signalled by a child", wait_for_child(cond(CLOCK_REALTIME), mutex(SHARED)))
CASE(pthread_cond_wait, "errorcheck, not taken", pthread_cond_wait(cond(CLOCK_REALTIME), mutex(ERRORCHECK)))
CASE(pthread_cond_wait, "errorcheck, held by another", pthread_cond_wait(cond(CLOCK_REALTIME), held(mutex(ERRORCHECK))))
CASE(pthread_cond_wait, "robust, not taken", pthread_cond_wait(cond(CLOCK_REALTIME), mutex(ROBUST)))
CASE(pthread_cond_wait, "robust, orphaned meanwhile", wait_and_inherit(cond(CLOCK_REALTIME), mutex(ROBUST)))
CASE_PENDING(pthread_cond_wait, "cancelled before", pthread_cond_wait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK)))))
CASE_CANCELLED(pthread_cond_wait, "cancelled while it waits", pthread_cond_wait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK)))))
CASE_CANCELLED(pthread_cond_wait, "robust, cancelled", pthread_cond_wait(cond(CLOCK_REALTIME), watch(locked(mutex(ROBUST)))))
CASE_CANCELLED(pthread_cond_wait, "inheritance, cancelled", pthread_cond_wait(cond(CLOCK_REALTIME), watch(locked(mutex(INHERIT | ERRORCHECK)))))

static long wait_until_soon(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock)
{
	return then_held(pthread_cond_timedwait(c, use(locked(m)), soon(clock)));
}

CASE(pthread_cond_timedwait, "in vain", wait_until_soon(cond(CLOCK_REALTIME), mutex(NORMAL), CLOCK_REALTIME))
CASE(pthread_cond_timedwait, "in vain, monotonic", wait_until_soon(cond(CLOCK_MONOTONIC), mutex(NORMAL), CLOCK_MONOTONIC))
CASE(pthread_cond_timedwait, "in vain, recursive", wait_until_soon(cond(CLOCK_REALTIME), mutex(RECURSIVE), CLOCK_REALTIME))
CASE(pthread_cond_timedwait, "in vain, inheritance", wait_until_soon(cond(CLOCK_REALTIME), mutex(INHERIT), CLOCK_REALTIME))
CASE(pthread_cond_timedwait, "in vain, robust", wait_until_soon(cond(CLOCK_REALTIME), mutex(ROBUST), CLOCK_REALTIME))
CASE(pthread_cond_timedwait, "too late", then_held(pthread_cond_timedwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), past())))
CASE(pthread_cond_timedwait, "no time", then_held(pthread_cond_timedwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), no_time())))
CASE(pthread_cond_timedwait, "negative time", then_held(pthread_cond_timedwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), negative())))
CASE(pthread_cond_timedwait, "before the epoch", then_held(pthread_cond_timedwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), before_epoch())))
CASE(pthread_cond_timedwait, "errorcheck, not taken", pthread_cond_timedwait(cond(CLOCK_REALTIME), mutex(ERRORCHECK), past()))
CASE(pthread_cond_timedwait, "errorcheck, not taken, no time", pthread_cond_timedwait(cond(CLOCK_REALTIME), mutex(ERRORCHECK), no_time()))
CASE_PENDING(pthread_cond_timedwait, "cancelled before", pthread_cond_timedwait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK))), later(CLOCK_REALTIME)))
CASE_PENDING(pthread_cond_timedwait, "cancelled before, too late", pthread_cond_timedwait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK))), past()))
CASE_CANCELLED(pthread_cond_timedwait, "cancelled while it waits", pthread_cond_timedwait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK))), later(CLOCK_REALTIME)))

CASE(pthread_cond_clockwait, "in vain", then_held(pthread_cond_clockwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC))))
CASE(pthread_cond_clockwait, "in vain, real time", then_held(pthread_cond_clockwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), CLOCK_REALTIME, soon(CLOCK_REALTIME))))
CASE(pthread_cond_clockwait, "strange clock", then_held(pthread_cond_clockwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), CLOCK_THREAD_CPUTIME_ID, past())))
CASE(pthread_cond_clockwait, "no time", then_held(pthread_cond_clockwait(cond(CLOCK_REALTIME), use(locked(mutex(NORMAL))), CLOCK_MONOTONIC, no_time())))
CASE(pthread_cond_clockwait, "errorcheck, not taken", pthread_cond_clockwait(cond(CLOCK_REALTIME), mutex(ERRORCHECK), CLOCK_MONOTONIC, past()))
CASE_PENDING(pthread_cond_clockwait, "cancelled before", pthread_cond_clockwait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK))), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))
CASE_CANCELLED(pthread_cond_clockwait, "cancelled while it waits", pthread_cond_clockwait(cond(CLOCK_REALTIME), watch(locked(mutex(ERRORCHECK))), CLOCK_MONOTONIC, later(CLOCK_MONOTONIC)))

CASE(pthread_cond_signal, "nobody waits", pthread_cond_signal(cond(CLOCK_REALTIME)))
CASE(pthread_cond_signal, "one of three is woken", pthread_cond_signal(with_waiters(cond(CLOCK_REALTIME), 3)) ? -1 : woken_now(1) > 0)
CASE_PENDING(pthread_cond_signal, "cancelled before", pthread_cond_signal(cond(CLOCK_REALTIME)))

CASE(pthread_cond_broadcast, "nobody waits", pthread_cond_broadcast(cond(CLOCK_REALTIME)))
CASE(pthread_cond_broadcast, "all three are woken", pthread_cond_broadcast(with_waiters(cond(CLOCK_REALTIME), 3)) ? -1 : woken_now(3))
CASE_PENDING(pthread_cond_broadcast, "cancelled before", pthread_cond_broadcast(cond(CLOCK_REALTIME)))
