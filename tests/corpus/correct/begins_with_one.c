/* SPDX-License-Identifier: MIT */
/* begins_with_one.c - the queue of a worker begins with one job; a thread that reads jobs from a pipe brings the others. */
/* run: hangs 1 */
#include "corpus.h"

static sem_t jobs;
static int from[2];

static void *reader(void *unused)
{
	char job;

	while (read(from[0], &job, 1) == 1)
		sem_post(&jobs);
	return unused;
}

int main(void)
{
	if (pipe(from))
		abort();
	sem_init(&jobs, 0, 1);
	start(reader, NULL);
	sem_wait(&jobs);
	for_ever();
	sem_wait(&jobs);
	return 0;
}
