/* SPDX-License-Identifier: MIT */
/* rwlock.c - every reader-writer lock routine, with and without a wait, and its errors. */
#define _GNU_SOURCE
#include <pthread.h>

#include "show.h"

static pthread_rwlock_t lock;

static void *in_turn(void *arg)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 600000), later_monotonic = in_ms(CLOCK_MONOTONIC, 600000);
	int result = -1;

	arrive();
	switch ((long)arg) {
	case 0:
		result = pthread_rwlock_rdlock(&lock);
		break;
	case 1:
		result = pthread_rwlock_wrlock(&lock);
		break;
	case 2:
		result = pthread_rwlock_timedrdlock(&lock, &later);
		break;
	case 3:
		result = pthread_rwlock_timedwrlock(&lock, &later);
		break;
	case 4:
		result = pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &later_monotonic);
		break;
	case 5:
		result = pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &later_monotonic);
		break;
	}
	if (result == 0)
		pthread_rwlock_unlock(&lock);
	return (void *)(long)result;
}

static void *while_read(void *arg)
{
	(void)arg;
	SHOW(pthread_rwlock_tryrdlock(&lock));
	SHOW(pthread_rwlock_unlock(&lock));
	SHOW(pthread_rwlock_trywrlock(&lock));
	SHOW(pthread_rwlock_timedwrlock(&lock, &long_ago));
	SHOW(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &long_ago));
	return NULL;
}

int main(void)
{
	pthread_rwlockattr_t attr;
	const struct timespec *volatile never = NULL; /* glibc accepts this kind, in spite of its header */
	pthread_t thread;
	void *value;
	long i;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	SHOW(pthread_rwlock_init(&lock, &attr));
	SHOW(pthread_rwlock_rdlock(&lock));
	SHOW(pthread_rwlock_timedrdlock(&lock, &not_a_time));
	SHOW(pthread_rwlock_timedrdlock(&lock, &long_ago));
	SHOW(pthread_rwlock_clockrdlock(&lock, CLOCK_THREAD_CPUTIME_ID, &long_ago));
	SHOW(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &long_ago));
	SHOW(pthread_rwlock_unlock(&lock));
	SHOW(pthread_rwlock_unlock(&lock));
	pthread_create(&thread, NULL, while_read, NULL);
	pthread_join(thread, NULL);
	SHOW(pthread_rwlock_unlock(&lock));
	SHOW(pthread_rwlock_wrlock(&lock));
	SHOW(pthread_rwlock_rdlock(&lock));
	SHOW(pthread_rwlock_wrlock(&lock));
	SHOW(pthread_rwlock_unlock(&lock));
	SHOW(pthread_rwlock_clockwrlock(&lock, CLOCK_REALTIME, never));
	SHOW(pthread_rwlock_unlock(&lock));
	for (i = 0; i < 6; i++) {
		SHOW(pthread_rwlock_wrlock(&lock));
		pthread_create(&thread, NULL, in_turn, (void *)i);
		let_block();
		SHOW(pthread_rwlock_unlock(&lock));
		pthread_join(thread, &value);
		printf("%ld: %ld\n", i, (long)value);
	}
	SHOW(pthread_rwlock_destroy(&lock));
	return 0;
}
