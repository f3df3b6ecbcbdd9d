/* SPDX-License-Identifier: MIT */
/* c11.c - <threads.h>. */
#include "case.h"

static mtx_t *mtx(int type)
{
	mtx_t *made = memory(sizeof(*made));

	if (mtx_init(made, type) != thrd_success)
		exit(3);
	return made;
}

static cnd_t *cnd(void)
{
	cnd_t *made = memory(sizeof(*made));

	if (cnd_init(made) != thrd_success)
		exit(3);
	return made;
}

static long take(void *m)
{
	return mtx_lock(m);
}

static long give(void *m)
{
	return mtx_unlock(m);
}

static mtx_t *taken(mtx_t *m)
{
	mtx_lock(m);
	return m;
}

static mtx_t *held_mtx(mtx_t *m)
{
	return until_let_go(take, give, m);
}

static int back(void *value)
{
	return (int)(long)value;
}

static int leave(void *value)
{
	thrd_exit((int)(long)value);
}

static int wait_a_moment(void *value)
{
	nap(20);
	return (int)(long)value;
}

static long create_and_join(thrd_start_t routine, long value)
{
	thrd_t thread;
	int result = -5;

	if (thrd_create(&thread, routine, (void *)value) != thrd_success)
		return -1;
	return both(thrd_join(thread, &result), result);
}

static long detach(void)
{
	thrd_t thread;

	thrd_create(&thread, wait_a_moment, NULL);
	return thrd_detach(thread);
}

static mtx_t *used;

static long wake(void *c)
{
	mtx_lock(used);
	cnd_signal(c);
	mtx_unlock(used);
	return 0;
}

static long wake_all(void *c)
{
	mtx_lock(used);
	cnd_broadcast(c);
	mtx_unlock(used);
	return 0;
}

static long wait_and_be_woken(cnd_t *c, mtx_t *m, function *how)
{
	used = m;
	mtx_lock(m);
	meanwhile(how, c);
	return both(cnd_wait(c, m), mtx_unlock(m));
}

CASE(thrd_create, "returns", create_and_join(back, 6))
CASE(thrd_exit, "value", create_and_join(leave, 7))
CASE(thrd_join, "still runs", create_and_join(wait_a_moment, 5))
CASE(thrd_join, "itself", thrd_join(thrd_current(), NULL))
CASE_PENDING(thrd_join, "cancelled before", thrd_join(sleeper(), NULL))
CASE_CANCELLED(thrd_join, "cancelled while it waits", thrd_join(sleeper(), NULL))
CASE(thrd_detach, "runs", detach())
CASE(thrd_detach, "detached", thrd_detach(detached()))

CASE(mtx_init, "plain", mtx_init(memory(sizeof(mtx_t)), mtx_plain))
CASE(mtx_init, "recursive and timed", mtx_init(memory(sizeof(mtx_t)), mtx_recursive | mtx_timed))
CASE(mtx_init, "no type", mtx_init(memory(sizeof(mtx_t)), 77))
CASE(mtx_destroy, "free", (mtx_destroy(mtx(mtx_plain)), 0))
CASE(mtx_lock, "free", mtx_lock(mtx(mtx_plain)))
CASE(mtx_lock, "recursive, again", mtx_lock(taken(mtx(mtx_recursive))))
CASE_PENDING(mtx_lock, "cancelled before", mtx_lock(mtx(mtx_plain)))
CASE_CANCELLED(mtx_lock, "cancelled while it waits", mtx_lock(held_mtx(mtx(mtx_plain))))
CASE_SIGNALLED(mtx_lock, "signalled while it waits", mtx_lock(held_mtx(mtx(mtx_plain))))
CASE(mtx_trylock, "free", mtx_trylock(mtx(mtx_plain)))
CASE(mtx_trylock, "again", mtx_trylock(taken(mtx(mtx_plain))))
CASE(mtx_trylock, "recursive, again", mtx_trylock(taken(mtx(mtx_recursive))))
CASE(mtx_trylock, "held", mtx_trylock(held_mtx(mtx(mtx_timed))))
CASE(mtx_timedlock, "free, too late", mtx_timedlock(mtx(mtx_timed), past()))
CASE(mtx_timedlock, "free, no time", mtx_timedlock(mtx(mtx_timed), no_time()))
CASE(mtx_timedlock, "held, in vain", mtx_timedlock(held_mtx(mtx(mtx_timed)), soon(CLOCK_REALTIME)))
CASE(mtx_timedlock, "held, too late", mtx_timedlock(held_mtx(mtx(mtx_timed)), past()))
CASE(mtx_timedlock, "held, no time", mtx_timedlock(held_mtx(mtx(mtx_timed)), no_time()))
CASE_CANCELLED(mtx_timedlock, "cancelled while it waits", mtx_timedlock(held_mtx(mtx(mtx_timed)), later(CLOCK_REALTIME)))
CASE(mtx_unlock, "taken", mtx_unlock(taken(mtx(mtx_plain))))
CASE(mtx_unlock, "recursive, held", mtx_unlock(held_mtx(mtx(mtx_recursive))))
CASE(mtx_unlock, "recursive, free", mtx_unlock(mtx(mtx_recursive)))

CASE(cnd_init, "new", cnd_init(memory(sizeof(cnd_t))))
CASE(cnd_destroy, "unused", (cnd_destroy(cnd()), 0))
CASE(cnd_signal, "nobody waits", cnd_signal(cnd()))
CASE(cnd_broadcast, "nobody waits", cnd_broadcast(cnd()))
CASE(cnd_wait, "signalled", wait_and_be_woken(cnd(), mtx(mtx_plain), wake))
CASE(cnd_wait, "broadcast", wait_and_be_woken(cnd(), mtx(mtx_recursive), wake_all))
CASE(cnd_wait, "recursive, not taken", cnd_wait(cnd(), mtx(mtx_recursive)) == thrd_error)
CASE_PENDING(cnd_wait, "cancelled before", cnd_wait(cnd(), taken(mtx(mtx_plain))))
CASE_CANCELLED(cnd_wait, "cancelled while it waits", cnd_wait(cnd(), taken(mtx(mtx_plain))))
CASE(cnd_timedwait, "in vain", cnd_timedwait(cnd(), taken(mtx(mtx_plain)), soon(CLOCK_REALTIME)))
CASE(cnd_timedwait, "too late", cnd_timedwait(cnd(), taken(mtx(mtx_plain)), past()))
CASE(cnd_timedwait, "no time", cnd_timedwait(cnd(), taken(mtx(mtx_plain)), no_time()))
CASE_PENDING(cnd_timedwait, "cancelled before", cnd_timedwait(cnd(), taken(mtx(mtx_plain)), later(CLOCK_REALTIME)))
CASE_CANCELLED(cnd_timedwait, "cancelled while it waits", cnd_timedwait(cnd(), taken(mtx(mtx_plain)), later(CLOCK_REALTIME)))

static int times;

static void count(void)
{
	times++;
}

static void be_cancelled(void)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static once_flag *new_flag(void)
{
	once_flag *flag = memory(sizeof(*flag));

	*flag = (once_flag)ONCE_FLAG_INIT;
	return flag;
}

static once_flag *flag;
CASE(call_once, "twice, runs once", times = 0, flag = new_flag(), call_once(flag, count), call_once(flag, count), times)
CASE_CANCELLED(call_once, "cancelled in the routine", call_once(flag = new_flag(), be_cancelled), 0)
CASE(call_once, "run again after that", times = 0, call_once(flag, count), times)
