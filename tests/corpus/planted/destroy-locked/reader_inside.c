/* SPDX-License-Identifier: MIT */
/* reader_inside.c - a read/write lock is destroyed while a reader holds it. */
/* expect: destroy-locked threads=main,reader objects=table sites=destroys */
/* also: use-after-destroy */
#include "corpus.h"

static pthread_rwlock_t table;
static int held, destroyed;

static void *reader(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table);
	arrive(&held);
	await(&destroyed, 1);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread;

	i_am("main");
	OBJECT(table);
	pthread_rwlock_init(&table, NULL);
	thread = start(reader, NULL);
	await(&held, 1);
	pthread_rwlock_destroy(&table); /* SITE destroys */
	arrive(&destroyed);
	join(thread);
	return 0;
}
