/* SPDX-License-Identifier: MIT */
/* rwlock.c - a reader releases its table once more than it took it. */
/* expect: unlock-unlocked threads=reader objects=table sites=again */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void *reader(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	pthread_rwlock_unlock(&table); /* SITE again */
	return unused;
}

int main(void)
{
	OBJECT(table);
	join(start(reader, NULL));
	return 0;
}
