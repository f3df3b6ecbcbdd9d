/* SPDX-License-Identifier: MIT */
/* forked_while_forker_holds.c - a thread forks with its own lock held; a thread of the child waits until it is released. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int waiting;

static void *waits(void *unused)
{
	set_tid(&waiting);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	int status;
	pid_t child;

	pthread_mutex_lock(&lock);
	child = fork();
	if (child == 0) {
		pthread_t thread = start(waits, NULL);

		await_asleep(&waiting);
		pthread_mutex_unlock(&lock);
		join(thread);
		_exit(0);
	}
	pthread_mutex_unlock(&lock);
	if (waitpid(child, &status, 0) != child || status)
		abort();
	return 0;
}
