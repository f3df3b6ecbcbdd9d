/* SPDX-License-Identifier: MIT */
/* deadlock.c - two threads surely take two locks in opposite orders; a third waits for work for ever. */
/* With an argument the kernel ends the program a second after all threads sleep. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "show.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all;

static void *one(void *x)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&all);
	arrive();
	pthread_mutex_lock(&second);
	return x;
}

static void *two(void *x)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&all);
	arrive();
	pthread_mutex_lock(&first);
	return x;
}

static void *idle(void *x)
{
	pthread_mutex_lock(&door);
	pthread_barrier_wait(&all);
	arrive();
	for (;;)
		pthread_cond_wait(&work, &door);
	return x;
}

int main(int argc, char **argv)
{
	pthread_t a, b, c;

	(void)argv;
	pthread_barrier_init(&all, NULL, 4);
	pthread_create(&a, NULL, one, NULL);
	pthread_create(&b, NULL, two, NULL);
	pthread_create(&c, NULL, idle, NULL);
	pthread_barrier_wait(&all);
	if (argc > 1) {
		for (int i = 0; i < 3; i++)
			let_block();
		alarm(1);
	}
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
