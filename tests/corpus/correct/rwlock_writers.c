/* SPDX-License-Identifier: MIT */
/* rwlock_writers.c - a read/write lock that prefers writers has many readers and writers. */
#include "corpus.h"

static pthread_rwlock_t table;
static long value;

static void *reader(void *unused)
{
	for (int i = 0; i < 200; i++) {
		pthread_rwlock_rdlock(&table);
		if (value < 0)
			abort();
		pthread_rwlock_unlock(&table);
	}
	return unused;
}

static void *writer(void *unused)
{
	for (int i = 0; i < 50; i++) {
		pthread_rwlock_wrlock(&table);
		value++;
		pthread_rwlock_unlock(&table);
	}
	return unused;
}

int main(void)
{
	pthread_rwlockattr_t attr;
	pthread_t threads[4];

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&table, &attr);
	for (int i = 0; i < 4; i++)
		threads[i] = start(i % 2 ? reader : writer, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	pthread_rwlock_destroy(&table);
	return value != 100;
}
