/* SPDX-License-Identifier: MIT */
/* rwlock.c - a thread reads a table after the lock of the table has been destroyed. */
/* expect: use-after-destroy threads=main objects=table sites=reads */
/* options: --long-hold 1h --suspects */
/* also: use-after-destroy */
#include "corpus.h"

static pthread_rwlock_t table;

int main(void)
{
	i_am("main");
	OBJECT(table);
	pthread_rwlock_init(&table, NULL);
	pthread_rwlock_wrlock(&table);
	pthread_rwlock_unlock(&table);
	pthread_rwlock_destroy(&table);
	pthread_rwlock_rdlock(&table); /* SITE reads */
	pthread_rwlock_unlock(&table);
	return 0;
}
