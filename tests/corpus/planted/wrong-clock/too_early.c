/* SPDX-License-Identifier: MIT */
/* too_early.c - a condition uses the time of day, but gets a time of the monotonic clock: the waits end at once. */
/* expect: wrong-clock threads=sleeper objects=bell sites=pause */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

int main(void)
{
	struct timespec limit;

	OBJECT(bell);
	i_am("sleeper");
	for (int i = 0; i < 20; i++) {
		clock_gettime(CLOCK_MONOTONIC, &limit);
		limit.tv_sec++;
		pthread_mutex_lock(&lock);
		pthread_cond_timedwait(&bell, &lock, &limit); /* SITE pause */
		pthread_mutex_unlock(&lock);
	}
	return 0;
}
