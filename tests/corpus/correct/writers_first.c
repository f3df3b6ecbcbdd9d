/* SPDX-License-Identifier: MIT */
/* writers_first.c - readers overlap all the time, but wait behind an editor, because the lock prefers writers. */
#include "corpus.h"

static pthread_rwlock_t page;
static int edited;

static void *reads(void *unused)
{
	while (!__atomic_load_n(&edited, __ATOMIC_ACQUIRE)) {
		pthread_rwlock_rdlock(&page);
		nap_ms(1);
		pthread_rwlock_unlock(&page);
	}
	return unused;
}

int main(void)
{
	pthread_rwlockattr_t attr;
	pthread_t readers[3];

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&page, &attr);
	for (int i = 0; i < 3; i++)
		readers[i] = start(reads, NULL);
	for (int i = 0; i < 20; i++) {
		nap_ms(20);
		pthread_rwlock_wrlock(&page);
		pthread_rwlock_unlock(&page);
	}
	__atomic_store_n(&edited, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		join(readers[i]);
	pthread_rwlock_destroy(&page);
	return 0;
}
