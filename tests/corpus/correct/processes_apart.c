/* SPDX-License-Identifier: MIT */
/* processes_apart.c - parent and child lock their own copies of two mutexes, each in its own order. */
#include "corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void lock_both(pthread_mutex_t *first, pthread_mutex_t *second)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(first);
		pthread_mutex_lock(second);
		pthread_mutex_unlock(second);
		pthread_mutex_unlock(first);
	}
}

int main(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		lock_both(&b, &a);
		return 0;
	}
	lock_both(&a, &b);
	waitpid(child, &status, 0);
	return status;
}
