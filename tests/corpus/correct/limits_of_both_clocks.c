/* SPDX-License-Identifier: MIT */
/* limits_of_both_clocks.c - conditions wait by their own clock; some time limits are zero, some are just over, and some never come. */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t by_day = PTHREAD_COND_INITIALIZER, by_uptime, moved;

static void *rests(void *unused)
{
	struct timespec never = {.tv_sec = 1L << 33};

	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&by_day, &lock, &never);
	return unused;
}

static struct timespec soon(clockid_t clock, long ns)
{
	struct timespec limit;

	clock_gettime(clock, &limit);
	limit.tv_nsec += ns;
	limit.tv_sec += limit.tv_nsec / 1000000000;
	limit.tv_nsec %= 1000000000;
	return limit;
}

int main(void)
{
	struct timespec limit, zero = {0};
	pthread_condattr_t attr;
	pthread_t thread;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&by_uptime, &attr);
	memcpy(&moved, &by_uptime, sizeof(moved)); /* nobody saw which clock it goes by */
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 200; i++) {
		pthread_cond_timedwait(&by_day, &lock, &zero);
		limit = soon(CLOCK_REALTIME, 0);
		pthread_cond_timedwait(&by_day, &lock, &limit);
		limit = soon(CLOCK_MONOTONIC, 100000);
		pthread_cond_timedwait(&by_uptime, &lock, &limit);
		pthread_cond_timedwait(&by_uptime, &lock, &limit);
		limit = soon(CLOCK_MONOTONIC, 100000);
		pthread_cond_timedwait(&moved, &lock, &limit);
		limit = soon(CLOCK_MONOTONIC, 100000);
		pthread_cond_clockwait(&by_day, &lock, CLOCK_MONOTONIC, &limit);
		limit = soon(CLOCK_REALTIME, 100000);
		pthread_cond_clockwait(&by_uptime, &lock, CLOCK_REALTIME, &limit);
	}
	pthread_mutex_unlock(&lock);
	pthread_create(&thread, NULL, rests, NULL);
	for_ever();
	pthread_join(thread, NULL);
	return 0;
}
