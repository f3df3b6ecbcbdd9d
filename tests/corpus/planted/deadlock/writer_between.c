/* SPDX-License-Identifier: MIT */
/* writer_between.c - a reader reads again while a writer waits, and the lock prefers writers. */
/* expect: deadlock threads=reader,writer objects=table sites=reads-again,writes */
/* run: hangs 3 */
#include "corpus.h"

static pthread_rwlock_t table;
static int held, waiting;

static void *reader(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table);
	arrive(&held);
	await_asleep(&waiting);
	for_ever();
	pthread_rwlock_rdlock(&table); /* SITE reads-again */
	pthread_rwlock_unlock(&table);
	pthread_rwlock_unlock(&table);
	return unused;
}

static void *writer(void *unused)
{
	i_am("writer");
	await(&held, 1);
	for_ever();
	set_tid(&waiting);
	pthread_rwlock_wrlock(&table); /* SITE writes */
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_rwlockattr_t attr;
	pthread_t first, second;

	OBJECT(table);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&table, &attr);
	first = start(reader, NULL);
	second = start(writer, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
