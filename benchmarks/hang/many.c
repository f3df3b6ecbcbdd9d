// SPDX-License-Identifier: MIT
// many.c - N threads that hang: `pair` has two threads in a deadlock and all others wait for them; in `ring`, each waits
// for the next.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t all;
static pthread_mutex_t *locks;
static int count, is_ring;

static __attribute__((noinline)) void take_second(int first, int second)
{
	pthread_mutex_lock(&locks[second]);
	pthread_mutex_unlock(&locks[second]);
	pthread_mutex_unlock(&locks[first]);
}

static __attribute__((noinline)) void take_first(int first, int second)
{
	pthread_mutex_lock(&locks[first]);
	pthread_barrier_wait(&all);
	take_second(first, second);
}

static void *work(void *number)
{
	int own = (int)(long)number;

	if (is_ring || own < 2) {
		take_first(own, is_ring ? (own + 1) % count : 1 - own);
	} else {
		pthread_barrier_wait(&all);
		pthread_mutex_lock(&locks[own % 2]);
		pthread_mutex_unlock(&locks[own % 2]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t last;

	if (argc != 3)
		return 2;
	count = atoi(argv[1]);
	is_ring = !strcmp(argv[2], "ring");
	locks = calloc((size_t)count, sizeof(*locks));
	pthread_barrier_init(&all, NULL, (unsigned)count + 1);
	for (long i = 0; i < count; i++)
		if (pthread_create(&last, NULL, work, (void *)i))
			return 1;
	pthread_barrier_wait(&all);
	puts("ready");
	fflush(stdout);
	pthread_join(last, NULL);
	return 0;
}
