/* SPDX-License-Identifier: MIT */
/* forks.c - three processes contend for a lock in shared memory, and their threads for locks of their own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t *shared, own = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
	struct timespec rest = {0, 300000};

	for (int i = 0; i < 8; i++) {
		pthread_mutex_lock(shared);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(shared);
		pthread_mutex_lock(&own);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(&own);
	}
	return unused;
}

static void run(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	pthread_mutexattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(shared, &attr);
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			run();
			_exit(0);
		}
	run();
	while (wait(NULL) > 0)
		;
	return 0;
}
