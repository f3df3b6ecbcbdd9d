/* SPDX-License-Identifier: MIT */
/* holding.c - holding MS: holds a lock for MS milliseconds while another thread waits, five times. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void quickly(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&other);
		pthread_mutex_unlock(&other);
	}
}

static void *wait_for_it(void *arg)
{
	for (int i = 0; i < 5; i++) {
		pthread_barrier_wait(&both);
		pthread_mutex_lock(&busy);
		pthread_mutex_unlock(&busy);
		pthread_barrier_wait(&both);
	}
	return arg;
}

static void hold(const struct timespec *time)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&busy);
		pthread_barrier_wait(&both);
		nanosleep(time, NULL);
		pthread_mutex_unlock(&busy);
		pthread_barrier_wait(&both);
	}
}

int main(int argc, char **argv)
{
	struct timespec time = {0, (argc > 1 ? atol(argv[1]) : 1) * 1000000};
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, wait_for_it, NULL);
	quickly();
	hold(&time);
	pthread_join(thread, NULL);
	return 0;
}
