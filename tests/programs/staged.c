/* SPDX-License-Identifier: MIT */
/* staged.c - takes the mutex `first`, takes `second` once the file DIR/second exists, and has a child take `third`. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER, third = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

static void await(const char *directory, const char *name)
{
	struct timespec t = { .tv_nsec = 1000000 };
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	while (access(path, F_OK))
		nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (argc > 2) {
		await(argv[1], "third");
		take(&third);
		return 0;
	}
	take(&first);
	await(argv[1], "second");
	take(&second);
	if (!fork()) {
		execl(argv[0], argv[0], argv[1], "child", (char *)NULL);
		_exit(127);
	}
	return wait(NULL) < 0;
}
