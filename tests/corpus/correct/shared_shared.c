/* SPDX-License-Identifier: MIT */
/* shared_shared.c - readers take two read/write locks in both orders; no reader waits for another. */
#include "corpus.h"

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;

static void *run(void *other)
{
	for (int i = 0; i < 200; i++) {
		pthread_rwlock_rdlock(other ? &b : &a);
		pthread_rwlock_rdlock(other ? &a : &b);
		pthread_rwlock_unlock(&a);
		pthread_rwlock_unlock(&b);
	}
	return NULL;
}

int main(void)
{
	pthread_t first = start(run, NULL), second = start(run, "");

	join(first);
	join(second);
	return 0;
}
