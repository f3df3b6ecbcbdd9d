/* SPDX-License-Identifier: MIT */
/* locks.c - locks and unlocks a mutex two million times for each line of input, then says so. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	pthread_t thread;
	char line[64];

	/* Without a second thread, the C library locks without atomic instructions until ptt attaches. */
	pthread_create(&thread, NULL, sleep_on, NULL);
	while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
		for (int i = 0; i < 2000000; i++) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		}
		if (write(STDOUT_FILENO, "done\n", 5) != 5)
			return 1;
	}
	return 0;
}
