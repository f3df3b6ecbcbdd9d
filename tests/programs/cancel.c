/* SPDX-License-Identifier: MIT */
/* cancel.c - each routine with a cancellation pending, and each cancellation point while it blocks. */
/*
 * Prints for each call whether the thread was cancelled there, whether its clean-up handler ran, and whether the thread then
 * held the mutex of a condition wait.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "show.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static mtx_t mtx;
static cnd_t cnd;
static sem_t empty, full;
static pthread_t sleeper;
static struct timespec later, later_monotonic;
static volatile int cleaned, was_held;

static void *sleep_long(void *arg)
{
	sleep(1000);
	return arg;
}

static void nothing(void)
{
}

static void cond_wait(void)
{
	pthread_cond_wait(&cond, &mutex);
}

static void cond_timedwait(void)
{
	pthread_cond_timedwait(&cond, &mutex, &later);
}

static void cond_clockwait(void)
{
	pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &later_monotonic);
}

static void sem_wait_empty(void)
{
	sem_wait(&empty);
}

static void sem_timedwait_empty(void)
{
	sem_timedwait(&empty, &later);
}

static void sem_clockwait_empty(void)
{
	sem_clockwait(&empty, CLOCK_MONOTONIC, &later_monotonic);
}

static void join(void)
{
	pthread_join(sleeper, NULL);
}

static void timedjoin(void)
{
	pthread_timedjoin_np(sleeper, NULL, &later);
}

static void clockjoin(void)
{
	pthread_clockjoin_np(sleeper, NULL, CLOCK_MONOTONIC, &later_monotonic);
}

static void c11_cnd_wait(void)
{
	mtx_lock(&mtx);
	cnd_wait(&cnd, &mtx);
}

static void c11_cnd_timedwait(void)
{
	mtx_lock(&mtx);
	cnd_timedwait(&cnd, &mtx, &later);
}

static void c11_join(void)
{
	thrd_join(sleeper, NULL);
}

static void sem_wait_full(void)
{
	sem_wait(&full);
}

static void sem_timedwait_full(void)
{
	sem_timedwait(&full, &later);
}

static void sem_clockwait_full(void)
{
	sem_clockwait(&full, CLOCK_MONOTONIC, &later_monotonic);
}

/* No cancellation points: a thread with a cancellation pending goes through all of them. */
static void no_points(void)
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_spin_lock(&spin);
	pthread_spin_unlock(&spin);
	pthread_barrier_wait(&barrier);
	pthread_once(&once, nothing);
	mtx_lock(&mtx);
	mtx_unlock(&mtx);
	cnd_signal(&cnd);
	pthread_cond_signal(&cond);
	sem_trywait(&empty);
	sem_post(&full);
	sem_trywait(&full);
	pthread_tryjoin_np(sleeper, NULL);
}

static const struct {
	const char *name;
	void (*call)(void);
	int blocks;
} points[] = {
	{"pthread_cond_wait", cond_wait, 1},
	{"pthread_cond_timedwait", cond_timedwait, 1},
	{"pthread_cond_clockwait", cond_clockwait, 1},
	{"sem_wait", sem_wait_empty, 1},
	{"sem_timedwait", sem_timedwait_empty, 1},
	{"sem_clockwait", sem_clockwait_empty, 1},
	{"pthread_join", join, 1},
	{"pthread_timedjoin_np", timedjoin, 1},
	{"pthread_clockjoin_np", clockjoin, 1},
	{"cnd_wait", c11_cnd_wait, 1},
	{"cnd_timedwait", c11_cnd_timedwait, 1},
	{"thrd_join", c11_join, 1},
	{"sem_wait, available", sem_wait_full, 0},
	{"sem_timedwait, available", sem_timedwait_full, 0},
	{"sem_clockwait, available", sem_clockwait_full, 0},
	{"no cancellation points", no_points, 0},
};

struct test {
	void (*call)(void);
	int pending;
};

static void clean(void *arg)
{
	(void)arg;
	cleaned = 1;
	was_held = pthread_mutex_trylock(&mutex) == EBUSY;
	pthread_mutex_unlock(&mutex);
	if (mtx_trylock(&mtx) == thrd_busy)
		was_held |= 2;
	mtx_unlock(&mtx);
}

static void *run(void *arg)
{
	struct test *test = arg;

	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean, NULL);
	if (test->pending)
		pthread_cancel(pthread_self());
	else
		arrive();
	test->call();
	pthread_cleanup_pop(1);
	return NULL;
}

static void try(size_t i, int pending)
{
	struct test test = {points[i].call, pending};
	int value = -1;
	pthread_t thread;
	void *result;

	cleaned = was_held = 0;
	pthread_create(&thread, NULL, run, &test);
	if (!pending) {
		let_block();
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	sem_getvalue(&full, &value);
	printf("%s%s: %s, %s, held %d, semaphore %d\n", points[i].name, pending ? ", pending" : "",
	       result == PTHREAD_CANCELED ? "cancelled" : "went on", cleaned ? "cleaned up" : "left as it was", was_held,
	       value);
}

int main(void)
{
	size_t i;

	later = in_ms(CLOCK_REALTIME, 600000);
	later_monotonic = in_ms(CLOCK_MONOTONIC, 600000);
	sem_init(&empty, 0, 0);
	sem_init(&full, 0, 9);
	pthread_barrier_init(&barrier, NULL, 1);
	pthread_spin_init(&spin, 0);
	mtx_init(&mtx, mtx_plain);
	cnd_init(&cnd);
	pthread_create(&sleeper, NULL, sleep_long, NULL);
	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		try(i, 1);
		if (points[i].blocks)
			try(i, 0);
	}
	return 0;
}
