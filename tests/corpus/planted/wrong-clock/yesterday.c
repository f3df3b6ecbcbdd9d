/* SPDX-License-Identifier: MIT */
/* yesterday.c - a worker computes its time limit from a date of some days ago, and does not pause. */
/* expect: wrong-clock threads=worker objects=bell sites=pause */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;

int main(void)
{
	struct timespec limit;

	OBJECT(bell);
	i_am("worker");
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec -= 3 * 86400;
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&lock);
		pthread_cond_timedwait(&bell, &lock, &limit); /* SITE pause */
		pthread_mutex_unlock(&lock);
	}
	return 0;
}
