/* SPDX-License-Identifier: MIT */
/* process_ended.c - a process ends with a lock in shared memory; its parent then waits for the lock for ever. */
/* expect: exit-holding-lock threads=child,parent objects=lock sites=locks,asks */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t *lock;

int main(void)
{
	pthread_mutexattr_t attr;
	pid_t child;

	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	object("lock", lock);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(lock, &attr);
	child = fork();
	if (child == 0) {
		i_am("child");
		pthread_mutex_lock(lock); /* SITE locks */
		_exit(0);
	}
	i_am("parent");
	waitpid(child, NULL, 0);
	for_ever();
	pthread_mutex_lock(lock); /* SITE asks */
	return 0;
}
