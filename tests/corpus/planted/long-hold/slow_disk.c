/* SPDX-License-Identifier: MIT */
/* slow_disk.c - a table stays write-locked until a slow disk has delivered its file. */
/* expect: long-hold threads=loader objects=table sites=locks */
/* options: --long-hold 200ms */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int disk[2], locked;

static void *loader(void *unused)
{
	char block;

	i_am("loader");
	pthread_rwlock_wrlock(&table); /* SITE locks */
	arrive(&locked);
	if (read(disk[0], &block, 1) != 1)
		abort();
	pthread_rwlock_unlock(&table);
	return unused;
}

static void *reader(void *unused)
{
	await(&locked, 1);
	pthread_rwlock_rdlock(&table);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread, other;

	OBJECT(table);
	if (pipe(disk))
		abort();
	thread = start(loader, NULL);
	other = start(reader, NULL);
	nap_ms(400);
	if (write(disk[1], "", 1) != 1)
		abort();
	join(thread);
	join(other);
	return 0;
}
