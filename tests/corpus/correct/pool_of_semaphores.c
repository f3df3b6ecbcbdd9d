/* SPDX-License-Identifier: MIT */
/* pool_of_semaphores.c - workers wait at a semaphore for jobs, and main for the workers, when the program is ended. */
/* run: hangs 3 */
#include "corpus.h"

static sem_t jobs;

static void *worker(void *unused)
{
	for_ever();
	while (!sem_wait(&jobs))
		;
	return unused;
}

int main(void)
{
	pthread_t one, other;

	sem_init(&jobs, 0, 0);
	one = start(worker, NULL);
	other = start(worker, NULL);
	sem_post(&jobs);
	for_ever();
	join(one);
	join(other);
	return 0;
}
