/* SPDX-License-Identifier: MIT */
/* robust_process.c - a process dies with a shared robust mutex, and its parent takes over. */
#include "corpus.h"

struct shared {
	pthread_mutex_t lock;
	int value;
};

int main(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pid_t child;

	needs_dead_owners_marked();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attr);
	child = fork();
	if (child == 0) {
		pthread_mutex_lock(&shared->lock);
		shared->value = 1;
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	if (pthread_mutex_lock(&shared->lock) != EOWNERDEAD)
		return 1;
	pthread_mutex_consistent(&shared->lock);
	shared->value = 0;
	pthread_mutex_unlock(&shared->lock);
	pthread_mutex_destroy(&shared->lock);
	return 0;
}
