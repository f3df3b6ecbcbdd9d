/* SPDX-License-Identifier: MIT */
/* deadlock.c - two threads that take two locks in opposite orders, for sure; one that waits for work for ever. */
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

static void *one(void *x)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&second);
	return x;
}

static void *two(void *x)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&first);
	return x;
}

static void *idle(void *x)
{
	pthread_mutex_lock(&door);
	for (;;)
		pthread_cond_wait(&work, &door);
	return x;
}

int main(void)
{
	pthread_t a, b, c;

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&a, NULL, one, NULL);
	pthread_create(&b, NULL, two, NULL);
	pthread_create(&c, NULL, idle, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
