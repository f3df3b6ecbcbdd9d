/* SPDX-License-Identifier: MIT */
/* read_in_write.c - a writer calls a getter that reads; the library returns EDEADLK, and the getter goes on and unlocks. */
/* expect: self-deadlock threads=main objects=table sites=again */
/* also: unlock-unlocked */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static __attribute__((noinline)) int get(void)
{
	return pthread_rwlock_rdlock(&table); /* SITE again */
}

int main(void)
{
	i_am("main");
	OBJECT(table);
	pthread_rwlock_wrlock(&table);
	if (get() != EDEADLK)
		abort();
	pthread_rwlock_unlock(&table);
	return 0;
}
