/* SPDX-License-Identifier: MIT */
/* read_lock.c - a reader leaves by pthread_exit deep in a call, and keeps its read lock. */
/* expect: exit-holding-lock threads=reader objects=table sites=locks */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static __attribute__((noinline)) void look_up(int key)
{
	if (key < 0)
		pthread_exit(NULL);
}

static void *reader(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table); /* SITE locks */
	look_up(-1);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	OBJECT(table);
	join(start(reader, NULL));
	return 0;
}
