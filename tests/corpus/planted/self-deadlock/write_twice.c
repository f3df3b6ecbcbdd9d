/* SPDX-License-Identifier: MIT */
/* write_twice.c - a writer locks its table for writing again; the library reports that, but the program ignores it. */
/* expect: self-deadlock threads=writer objects=table sites=again */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void *writer(void *unused)
{
	i_am("writer");
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_wrlock(&table); /* SITE again */
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	OBJECT(table);
	join(start(writer, NULL));
	return 0;
}
