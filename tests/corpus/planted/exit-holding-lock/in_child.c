/* SPDX-License-Identifier: MIT */
/* in_child.c - a thread of a child process ends with a lock in shared memory. */
/* expect: exit-holding-lock threads=worker objects=lock sites=locks */
#include "corpus.h"

static pthread_mutex_t *lock;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(lock); /* SITE locks */
	return unused;
}

int main(void)
{
	pthread_mutexattr_t attr;
	int status;
	pid_t child;

	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	object("lock", lock);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(lock, &attr);
	child = fork();
	if (child == 0) {
		join(start(worker, NULL));
		return 0;
	}
	waitpid(child, &status, 0);
	return status;
}
