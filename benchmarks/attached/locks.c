/* SPDX-License-Identifier: MIT */
/* locks.c - locks and unlocks a mutex two million times for each line of input, then says so. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	while (getchar() == '\n') {
		for (int i = 0; i < 2000000; i++) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		}
		puts("done");
		fflush(stdout);
	}
	return 0;
}
