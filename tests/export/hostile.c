/* SPDX-License-Identifier: MIT */
/* hostile.c - names that no format expects, locks held hand over hand, and waits that always occur. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

static const char *const names[] = {"\"q\\u'o<t>&", "a\nb\tc\rd", "%EndEventDef", "]}},{{[",
				    "\xc3\xa9\xe4\xb8\xad", "\xff\xfe\x80\xc3"};
#define THREADS (sizeof(names) / sizeof(names[0]))

pthread_mutex_t weird = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t chain[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				   PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t all;
static sem_t turn;

static void *run(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_barrier_wait(&all);
	sem_wait(&turn);
	pthread_mutex_lock(&weird);
	pthread_mutex_lock(&chain[0]);
	for (int i = 1; i < 4; i++) {
		pthread_mutex_lock(&chain[i]);
		pthread_mutex_unlock(&chain[i - 1]);
	}
	pthread_mutex_unlock(&chain[3]);
	pthread_mutex_unlock(&weird);
	sem_post(&turn);
	pthread_barrier_wait(&all);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&all, NULL, THREADS);
	sem_init(&turn, 0, 1);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)names[i]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
