/* SPDX-License-Identifier: MIT */
/* too_early.c - a condition that goes by the time of day is given a time of the monotonic clock: the pauses are none. */
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
