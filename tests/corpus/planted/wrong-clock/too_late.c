/* SPDX-License-Identifier: MIT */
/* too_late.c - a condition uses the monotonic clock, but gets a time of day: the wait does not end. */
/* expect: wrong-clock threads=sleeper objects=bell sites=pause */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell;

int main(void)
{
	pthread_condattr_t attr;
	struct timespec limit;

	OBJECT(bell);
	i_am("sleeper");
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&bell, &attr);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 5;
	pthread_mutex_lock(&lock);
	for_ever();
	pthread_cond_timedwait(&bell, &lock, &limit); /* SITE pause */
	return 0;
}
