/* SPDX-License-Identifier: MIT */
/* mix.c - threads that do many kinds of calls, which a seed chooses: mix SEED STEPS. It always ends, and never deadlocks. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 6

static pthread_mutex_t plain[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t recursive, queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t slots, items, gate, loose;
static int queued, over, steps;

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void rest(uint32_t r)
{
	struct timespec t = {0, r % 5 ? r % 2000 : r % 400000};

	nanosleep(&t, NULL);
}

static struct timespec soon(uint32_t r)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += r % 300000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void locks(uint32_t r)
{
	pthread_mutex_t *one = &plain[r % 3];
	struct timespec until = soon(r);

	if (r % 7 == 0 ? pthread_mutex_timedlock(one, &until) : r % 7 == 1 ? pthread_mutex_trylock(one) :
							      pthread_mutex_lock(one))
		return;
	rest(r);
	/* Always in this order. */
	if (r % 3 < 2 && r % 5 == 0) {
		pthread_mutex_lock(&plain[2]);
		rest(r / 7);
		pthread_mutex_unlock(&plain[2]);
	}
	pthread_mutex_unlock(one);
}

static void readers(uint32_t r)
{
	struct timespec until = soon(r);

	if (r % 4 == 0)
		pthread_rwlock_wrlock(&rwlock);
	else if (r % 4 != 1)
		pthread_rwlock_rdlock(&rwlock);
	else if (pthread_rwlock_timedrdlock(&rwlock, &until))
		return;
	rest(r);
	pthread_rwlock_unlock(&rwlock);
}

static void put(uint32_t r)
{
	pthread_mutex_lock(&queue_lock);
	queued += r % 2;
	if (r % 6 == 0)
		pthread_cond_broadcast(&queue_filled);
	else
		pthread_cond_signal(&queue_filled);
	if (r % 3 == 0)
		rest(r / 3 * 5);
	pthread_mutex_unlock(&queue_lock);
	if (r % 3 == 1)
		pthread_cond_signal(&queue_filled);
}

static void get(uint32_t r)
{
	struct timespec until = soon(r);

	pthread_mutex_lock(&queue_lock);
	while (!queued && !over)
		if (r % 2 ? pthread_cond_timedwait(&queue_filled, &queue_lock, &until) == ETIMEDOUT :
			    pthread_cond_wait(&queue_filled, &queue_lock))
			break;
	queued = queued > 4 ? queued - 4 : 0;
	pthread_mutex_unlock(&queue_lock);
}

static void counts(uint32_t r)
{
	struct timespec until = soon(r);

	switch (r % 5) {
	case 0:
		sem_wait(&slots);
		rest(r);
		sem_post(&slots);
		break;
	case 1:
		sem_post(&items);
		break;
	case 2:
		sem_timedwait(&items, &until);
		break;
	case 3: /* a lock */
		if (sem_timedwait(&gate, &until) == 0) {
			rest(r);
			sem_post(&gate);
		}
		break;
	default: /* a semaphore that stops being a lock after an extra post */
		if (r % 64 == 0 || sem_timedwait(&loose, &until) == 0) {
			rest(r);
			sem_post(&loose);
		}
	}
}

static void twice(uint32_t r)
{
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	rest(r);
	pthread_mutex_unlock(&recursive);
	pthread_mutex_unlock(&recursive);
}

static void *worker(void *seed)
{
	uint32_t state = (uint32_t)(uintptr_t)seed;

	for (int i = 0; i < steps; i++) {
		uint32_t r = next(&state);

		switch (r % 8) {
		case 0:
		case 1:
			locks(r / 8);
			break;
		case 2:
			readers(r / 8);
			break;
		case 3:
			put(r / 8);
			break;
		case 4:
			get(r / 8);
			break;
		case 5:
			counts(r / 8);
			break;
		case 6:
			twice(r / 8);
			break;
		default:
			pthread_spin_lock(&spin);
			pthread_spin_unlock(&spin);
		}
		if (i % 50 == 49)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Getters must not wait for ever while the other threads are at the barrier. */
static void *feeder(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		rest(399999);
		pthread_mutex_lock(&queue_lock);
		queued++;
		pthread_cond_broadcast(&queue_filled);
		pthread_mutex_unlock(&queue_lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
	pthread_t threads[THREADS], feeds;
	pthread_mutexattr_t attr;

	steps = argc > 2 ? atoi(argv[2]) : 200;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	pthread_barrier_init(&barrier, NULL, THREADS);
	sem_init(&slots, 0, 2);
	sem_init(&items, 0, 0);
	sem_init(&gate, 0, 1);
	sem_init(&loose, 0, 1);
	pthread_create(&feeds, NULL, feeder, NULL);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)(seed * 7919 + i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	pthread_join(feeds, NULL);
	pthread_barrier_destroy(&barrier);
	pthread_mutex_destroy(&recursive);
	return 0;
}
