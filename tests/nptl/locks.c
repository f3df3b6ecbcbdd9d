/* locks.c - two threads and two low-level locks: a thread surely waits for the first, and none waits for the second. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "inside.h"

int stream_lock; /* a global variable, so PTT finds its name */
static int *arena_lock;
static int may_take, waits;

static void wait_until(int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

static __attribute__((noinline)) void lock(int *word, int kind)
{
	int unlocked = 0;

	if (__atomic_compare_exchange_n(word, &unlocked, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		POINT(lll_taken, word, kind, 0);
		return;
	}
	POINT(lll_wait, word, kind, 0);
	__atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
	do {
		sched_yield();
		unlocked = 0;
	} while (!__atomic_compare_exchange_n(word, &unlocked, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	POINT(lll_waited, word, kind, 0);
}

static __attribute__((noinline)) void unlock(int *word, int kind)
{
	POINT(lll_free, word, kind, 0);
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

static void *other(void *arg)
{
	wait_until(&may_take);
	lock(&stream_lock, NPTL_TRACE_LLL_STDIO);
	unlock(&stream_lock, NPTL_TRACE_LLL_STDIO);
	return arg;
}

int main(void)
{
	pthread_t thread;

	arena_lock = calloc(1, sizeof(*arena_lock));
	pthread_create(&thread, NULL, other, NULL);
	lock(arena_lock, NPTL_TRACE_LLL_MALLOC);
	lock(&stream_lock, NPTL_TRACE_LLL_STDIO);
	__atomic_store_n(&may_take, 1, __ATOMIC_RELEASE);
	wait_until(&waits);
	unlock(&stream_lock, NPTL_TRACE_LLL_STDIO);
	unlock(arena_lock, NPTL_TRACE_LLL_MALLOC);
	pthread_join(thread, NULL);
	return 0;
}
