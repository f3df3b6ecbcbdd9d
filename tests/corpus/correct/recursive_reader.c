/* SPDX-License-Identifier: MIT */
/* recursive_reader.c - a reader reads again inside its read lock, which the default preference allows, while others read. */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void *run(void *unused)
{
	for (int i = 0; i < 100; i++) {
		pthread_rwlock_rdlock(&table);
		pthread_rwlock_rdlock(&table);
		pthread_rwlock_unlock(&table);
		pthread_rwlock_unlock(&table);
	}
	return unused;
}

int main(void)
{
	pthread_t first = start(run, NULL), second = start(run, NULL);

	join(first);
	join(second);
	pthread_rwlock_destroy(&table);
	return 0;
}
