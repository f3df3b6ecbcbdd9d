/* SPDX-License-Identifier: MIT */
/* all_but_one.c - a loop over the threads to join ends one thread too early. */
/* expect: thread-leak threads=3 */
#include "corpus.h"

#define THREADS 4

static void *worker(void *number)
{
	char name[8];

	snprintf(name, sizeof(name), "%ld", (long)number);
	i_am(name);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		threads[i] = start(worker, (void *)i);
	for (int i = 0; i < THREADS - 1; i++)
		join(threads[i]);
	await_threads(1);
	return 0;
}
