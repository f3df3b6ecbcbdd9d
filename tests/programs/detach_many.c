/* SPDX-License-Identifier: MIT */
/* detach_many.c - threads that make threads and detach them, so that each pthread_t is used by many: detach_many HOW COUNT. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <threads.h>

static long count;
static int c11;

static void *end(void *arg)
{
	return arg;
}

static int end_c11(void *arg)
{
	(void)arg;
	return 0;
}

static int make(pthread_t *thread)
{
	if (c11)
		return thrd_create(thread, end_c11, NULL) != thrd_success;
	return pthread_create(thread, NULL, end, NULL);
}

static void *run(void *arg)
{
	long made = 0;

	while (made < count) {
		pthread_t thread;

		if (make(&thread)) {
			sched_yield();
			continue;
		}
		sched_yield();
		if (c11)
			thrd_detach(thread);
		else
			pthread_detach(thread);
		made++;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t makers[4];
	int i;

	if (argc != 3)
		return 2;
	c11 = argv[1][0] == 'c';
	count = atol(argv[2]);
	for (i = 0; i < 4; i++)
		pthread_create(&makers[i], NULL, run, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(makers[i], NULL);
	return 0;
}
