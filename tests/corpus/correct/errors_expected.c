/* SPDX-License-Identifier: MIT */
/* errors_expected.c - calls return EBUSY or time out, and the program handles these results. */
#include "corpus.h"

static pthread_mutex_t lock;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;

static void *run(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 3);
	struct timespec monotonic = in_ms(CLOCK_MONOTONIC, 3);

	if (pthread_mutex_trylock(&lock) != EBUSY ||
	    pthread_mutex_timedlock(&lock, &soon) != ETIMEDOUT ||
	    pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &monotonic) != ETIMEDOUT ||
	    pthread_rwlock_tryrdlock(&table) != EBUSY || pthread_rwlock_trywrlock(&table) != EBUSY ||
	    pthread_rwlock_timedwrlock(&table, &soon) != ETIMEDOUT ||
	    pthread_rwlock_clockrdlock(&table, CLOCK_MONOTONIC, &monotonic) != ETIMEDOUT ||
	    sem_trywait(&empty) == 0 || sem_timedwait(&empty, &soon) == 0)
		abort();
	return unused;
}

int main(void)
{
	struct timespec soon;
	pthread_t thread;

	init_mutex(&lock, PTHREAD_MUTEX_ERRORCHECK);
	sem_init(&empty, 0, 0);
	pthread_mutex_lock(&lock);
	pthread_rwlock_wrlock(&table);
	thread = start(run, NULL);
	join(thread);
	soon = in_ms(CLOCK_REALTIME, 2);
	if (pthread_cond_timedwait(&never, &lock, &soon) != ETIMEDOUT)
		return 1;
	pthread_rwlock_unlock(&table);
	pthread_mutex_unlock(&lock);
	pthread_mutex_destroy(&lock);
	return 0;
}
