/* SPDX-License-Identifier: MIT */
/* handover.c - a thread waits on a condition variable, another thread signals it twice: two groups, one hand-over. */
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int waiting, parcels;

static void *receive(void *arg)
{
	pthread_mutex_lock(&lock);
	waiting++;
	while (!parcels)
		pthread_cond_wait(&ready, &lock);
	parcels--;
	pthread_mutex_unlock(&lock);
	return arg;
}

static void hand_over(void)
{
	bool anybody = false;

	while (!anybody) {
		pthread_mutex_lock(&lock);
		anybody = waiting > 0;
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	pthread_mutex_lock(&lock);
	parcels++;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
	/* no thread waits any more */
	pthread_cond_signal(&ready);
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, receive, NULL))
		return 1;
	hand_over();
	pthread_join(thread, NULL);
	return 0;
}
