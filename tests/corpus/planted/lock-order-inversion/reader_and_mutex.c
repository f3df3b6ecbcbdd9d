/* SPDX-License-Identifier: MIT */
/* reader_and_mutex.c - one thread counts under a read lock, another writes under the counter's lock. */
/* expect: lock-order-inversion threads=lookup,flush objects=table,counter sites=counts,writes */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static void *lookup(void *unused)
{
	i_am("lookup");
	pthread_rwlock_rdlock(&table);
	pthread_mutex_lock(&counter); /* SITE counts */
	pthread_mutex_unlock(&counter);
	pthread_rwlock_unlock(&table);
	arrive(&turn);
	return unused;
}

static void *flush(void *unused)
{
	i_am("flush");
	await(&turn, 1);
	pthread_mutex_lock(&counter);
	pthread_rwlock_wrlock(&table); /* SITE writes */
	pthread_rwlock_unlock(&table);
	pthread_mutex_unlock(&counter);
	return unused;
}

int main(void)
{
	pthread_t first = start(lookup, NULL), second = start(flush, NULL);

	OBJECT(table);
	OBJECT(counter);
	join(first);
	join(second);
	return 0;
}
