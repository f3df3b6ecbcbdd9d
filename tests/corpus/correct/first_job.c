/* SPDX-License-Identifier: MIT */
/* first_job.c - a child does the first job of a service, which waits for the next job when it is stopped. */
/* run: hangs 1 */
#include "corpus.h"

static sem_t *jobs;

/* It posts the next job when a job comes in; none comes. */
static void *clerk(void *unused)
{
	nap_ms(1000000);
	sem_post(jobs);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	jobs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(jobs, 1, 1);
	child = fork();
	if (child == 0) {
		sem_wait(jobs);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	pthread_create(&thread, NULL, clerk, NULL);
	for_ever();
	sem_wait(jobs);
	return 0;
}
