/* SPDX-License-Identifier: MIT */
/* many_threads.c - three hundred short threads follow one another and reuse ids and stacks. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *run(void *unused)
{
	pthread_mutex_lock(&lock);
	counter++;
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_t threads[3];

		for (int k = 0; k < 3; k++)
			threads[k] = start(run, NULL);
		for (int k = 0; k < 3; k++)
			join(threads[k]);
	}
	return counter != 300;
}
