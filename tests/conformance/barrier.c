/* SPDX-License-Identifier: MIT */
/* barrier.c - pthread_barrier_*, pthread_spin_* and pthread_once. */
#include "case.h"

#include <sys/wait.h>

static long arrive(void *b)
{
	return pthread_barrier_wait(b);
}

/* Of two threads that meet, one learns that it is the serial thread. */
static long meet(pthread_barrier_t *b)
{
	int mine;

	meanwhile(arrive, b);
	mine = pthread_barrier_wait(b);
	return mine + result_of_meanwhile();
}

static long meet_child(pthread_barrier_t *b)
{
	int mine, status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(pthread_barrier_wait(b) ? 1 : 0);
	mine = pthread_barrier_wait(b) ? 1 : 0;
	waitpid(pid, &status, 0);
	return mine + WEXITSTATUS(status);
}

static long arrive_now(void *b)
{
	(void)b;
	return 0;
}

static pthread_barrier_t *met_later(pthread_barrier_t *b)
{
	return until_let_go(arrive_now, arrive, b);
}

static pthread_barrier_t *again;
CASE(pthread_barrier_init, "for two", pthread_barrier_init(memory(sizeof(pthread_barrier_t)), NULL, 2))
CASE(pthread_barrier_init, "for nobody", pthread_barrier_init(memory(sizeof(pthread_barrier_t)), NULL, 0))
CASE(pthread_barrier_init, "for too many", pthread_barrier_init(memory(sizeof(pthread_barrier_t)), NULL, UINT_MAX))
CASE(pthread_barrier_destroy, "unused", pthread_barrier_destroy(barrier(2)))
CASE(pthread_barrier_wait, "alone", pthread_barrier_wait(barrier(1)))
CASE(pthread_barrier_wait, "two", meet(again = barrier(2)))
CASE(pthread_barrier_wait, "two, again", meet(again))
CASE(pthread_barrier_wait, "destroyed after use", pthread_barrier_destroy(again))
CASE(pthread_barrier_wait, "with a child", meet_child(barrier(2)))
CASE_PENDING(pthread_barrier_wait, "alone, cancelled before", pthread_barrier_wait(barrier(1)))
CASE_CANCELLED(pthread_barrier_wait, "cancelled while it waits", (pthread_barrier_wait(met_later(barrier(2))), 0))
CASE_SIGNALLED(pthread_barrier_wait, "signalled while it waits", (pthread_barrier_wait(met_later(barrier(2))), 0))

static pthread_spinlock_t *spin_locked(pthread_spinlock_t *l)
{
	pthread_spin_lock(l);
	return l;
}

static long spun;

static long spin_up(void *l)
{
	int i;

	for (i = 0; i < 100; i++) {
		pthread_spin_lock(l);
		spun++;
		pthread_spin_unlock(l);
	}
	return 0;
}

static long spin_both(void *l)
{
	spun = 0;
	meanwhile(spin_up, l);
	spin_up(l);
	result_of_meanwhile();
	return spun;
}

CASE(pthread_spin_init, "private", pthread_spin_init(memory(sizeof(pthread_spinlock_t)), PTHREAD_PROCESS_PRIVATE))
CASE(pthread_spin_destroy, "free", pthread_spin_destroy(spin()))
CASE(pthread_spin_lock, "free", pthread_spin_lock(spin()))
CASE(pthread_spin_lock, "two threads", spin_both((void *)spin()))
CASE_PENDING(pthread_spin_lock, "cancelled before", pthread_spin_lock(spin()))
CASE_CANCELLED(pthread_spin_lock, "cancelled while it spins", pthread_spin_lock(spin_held(spin())))
CASE(pthread_spin_trylock, "free", pthread_spin_trylock(spin()))
CASE(pthread_spin_trylock, "again", pthread_spin_trylock(spin_locked(spin())))
CASE(pthread_spin_trylock, "held", pthread_spin_trylock(spin_held(spin())))
CASE(pthread_spin_unlock, "taken", pthread_spin_unlock(spin_locked(spin())))

/* ------------------------------------------------------------ once */

static pthread_once_t *new_once(void)
{
	pthread_once_t *once = memory(sizeof(*once));

	*once = PTHREAD_ONCE_INIT;
	return once;
}

static int times;
static pthread_once_t *outer, *inner, *left_early;

static void count(void)
{
	times++;
}

static void count_slowly(void)
{
	nap(10);
	times++;
}

static void count_inner(void)
{
	pthread_once(inner, count);
	times++;
}

static void set_errno(void)
{
	errno = ENOTTY;
}

static void be_cancelled(void)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static long once_slowly(void *once)
{
	return pthread_once(once, count_slowly);
}

static long run_together(pthread_once_t *once)
{
	times = 0;
	meanwhile(once_slowly, once);
	pthread_once(once, count_slowly);
	result_of_meanwhile();
	return times;
}

CASE(pthread_once, "first", pthread_once(new_once(), count))
CASE(pthread_once, "three times, runs once", times = 0, outer = new_once(), pthread_once(outer, count) + pthread_once(outer, count) + pthread_once(outer, count), times)
CASE(pthread_once, "one in another", times = 0, outer = new_once(), inner = new_once(), pthread_once(outer, count_inner), times)
CASE(pthread_once, "two threads", run_together(new_once()))
CASE(pthread_once, "errno of the routine", pthread_once(new_once(), set_errno))
CASE_PENDING(pthread_once, "cancelled before", pthread_once(new_once(), count))
CASE_CANCELLED(pthread_once, "cancelled in the routine", pthread_once(left_early = new_once(), be_cancelled))
CASE(pthread_once, "run again after that", times = 0, pthread_once(left_early, count), times)
