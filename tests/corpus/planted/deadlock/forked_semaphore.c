/* SPDX-License-Identifier: MIT */
/* forked_semaphore.c - a process forks while another thread holds a semaphore that serves as a lock; the child asks for that semaphore. */
/* expect: deadlock threads=child,holder objects=settings sites=takes,forks,locks */
/* run: hangs 1 */
/* status: 0 */
#include "corpus.h"

static sem_t settings;
static int held, forked;

static void *holder(void *unused)
{
	i_am("holder");
	sem_wait(&settings); /* SITE takes */
	arrive(&held);
	await(&forked, 1);
	sem_post(&settings);
	return unused;
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	sem_init(&settings, 0, 1);
	OBJECT(settings);
	sem_wait(&settings);
	sem_post(&settings);
	thread = start(holder, NULL);
	await(&held, 1);
	child = fork(); /* SITE forks */
	if (child == 0) {
		i_am("child");
		for_ever();
		sem_wait(&settings); /* SITE locks */
		sem_post(&settings);
		_exit(0);
	}
	arrive(&forked);
	join(thread);
	waitpid(child, NULL, 0);
	return 0;
}
