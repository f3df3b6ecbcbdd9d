/* SPDX-License-Identifier: MIT */
/* contention.c - contention that is known: three threads in five phases, each of which says how long they waited. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, door = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static sem_t slots;
static pthread_barrier_t start, meet;
static int there_is_work;
static long waited[5]; /* by phase */

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static void add(int phase, long began)
{
	__atomic_fetch_add(&waited[phase], now() - began, __ATOMIC_RELAXED);
}

/* The first thread has the lock before the others ask for it. */
static void *run(void *number)
{
	long me = (long)number, began;

	if (me == 0)
		pthread_mutex_lock(&hot);
	pthread_barrier_wait(&start);
	if (me == 0) {
		pause_ms(60);
	} else {
		began = now();
		pthread_mutex_lock(&hot);
		add(0, began);
		pause_ms(20);
	}
	pthread_mutex_unlock(&hot);

	if (me == 0)
		pthread_rwlock_wrlock(&table);
	pthread_barrier_wait(&start);
	if (me == 0) {
		pause_ms(40);
	} else {
		began = now();
		pthread_rwlock_rdlock(&table);
		add(1, began);
	}
	pthread_rwlock_unlock(&table);

	if (me == 0)
		sem_wait(&slots);
	pthread_barrier_wait(&start);
	if (me == 0) {
		pause_ms(30);
	} else {
		began = now();
		sem_wait(&slots);
		add(2, began);
	}
	sem_post(&slots);

	pthread_barrier_wait(&start);
	if (me == 0)
		pause_ms(50);
	began = now();
	pthread_barrier_wait(&meet);
	if (me)
		add(3, began);

	pthread_mutex_lock(&door);
	if (me == 1) {
		while (!there_is_work)
			pthread_cond_wait(&work, &door);
	} else if (me == 0) {
		pthread_mutex_unlock(&door);
		pause_ms(40);
		pthread_mutex_lock(&door);
		there_is_work = 1;
		pthread_cond_signal(&work);
		began = now();
		pause_ms(30);
		add(4, began);
	}
	pthread_mutex_unlock(&door);
	return NULL;
}

int main(void)
{
	static const char *const names[] = {"mutex hot", "rwlock table", "semaphore slots", "barrier meet",
					    "mutex door"};
	pthread_t threads[3];

	sem_init(&slots, 0, 1);
	pthread_barrier_init(&start, NULL, 3);
	pthread_barrier_init(&meet, NULL, 3);
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 5; i++)
		printf("%s %ld\n", names[i], waited[i]);
	return 0;
}
