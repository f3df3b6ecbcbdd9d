/* SPDX-License-Identifier: MIT */
/* in_use.c - main destroys a table while a worker still uses it. */
/* expect: destroy-locked threads=main,worker objects=table sites=destroys */
#include "corpus.h"

static pthread_mutex_t table;
static int held, destroyed;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(&table); /* SITE locks */
	arrive(&held);
	await(&destroyed, 1);
	pthread_mutex_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread;

	i_am("main");
	OBJECT(table);
	pthread_mutex_init(&table, NULL);
	thread = start(worker, NULL);
	await(&held, 1);
	pthread_mutex_destroy(&table); /* SITE destroys */
	arrive(&destroyed);
	join(thread);
	return 0;
}
