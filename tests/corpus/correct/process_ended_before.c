/* SPDX-License-Identifier: MIT */
/* process_ended_before.c - a process ends with a robust mutex in shared memory; the next owner repairs it. */
#include "corpus.h"

int main(void)
{
	pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pid_t child;

	needs_dead_owners_marked();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(lock);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	if (pthread_mutex_lock(lock) == EOWNERDEAD)
		pthread_mutex_consistent(lock);
	pthread_mutex_unlock(lock);
	return 0;
}
