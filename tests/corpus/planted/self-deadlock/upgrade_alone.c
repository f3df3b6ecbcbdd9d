/* SPDX-License-Identifier: MIT */
/* upgrade_alone.c - a thread that holds a table for reading also wants it for writing. */
/* expect: self-deadlock threads=reader objects=table sites=upgrade */
/* run: hangs 2 */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void *reader(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table);
	for_ever();
	pthread_rwlock_wrlock(&table); /* SITE upgrade */
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(table);
	thread = start(reader, NULL);
	for_ever();
	join(thread);
	return 0;
}
