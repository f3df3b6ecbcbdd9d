/* SPDX-License-Identifier: MIT */
/* busy.c - four threads contend for two locks, ROUNDS times or for ever: busy [ROUNDS]. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static long rounds = -1;

static void *work(void *number)
{
	struct timespec rest = {0, 200000};

	for (long i = 0; i != rounds; i++) {
		pthread_mutex_lock(&hot);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(&hot);
		if (number)
			pthread_rwlock_rdlock(&table);
		else
			pthread_rwlock_wrlock(&table);
		nanosleep(&rest, NULL);
		pthread_rwlock_unlock(&table);
	}
	return number;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	if (argc > 1)
		rounds = atol(argv[1]);
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
