/* SPDX-License-Identifier: MIT */
/* twice.c - a function posts its semaphore at an error and again at its end; two threads then edit the same table. */
/* expect: extra-post threads=careless,editor objects=table sites=post,edit */
#include "corpus.h"

static sem_t table;
static int both, passed;

static void *edits(void *unused)
{
	if (!unused)
		i_am("editor");
	await(&passed, 1);
	for (int i = 0; i < 20; i++) {
		sem_wait(&table); /* SITE edit */
		if (i == 0)
			meet(&both, 2);
		sem_post(&table);
	}
	return unused;
}

int main(void)
{
	pthread_t one, other;

	OBJECT(table);
	i_am("careless");
	sem_init(&table, 0, 1);
	one = start(edits, NULL);
	other = start(edits, "");
	for (int i = 0; i < 5; i++) {
		sem_wait(&table);
		sem_post(&table);
	}
	sem_post(&table); /* SITE post */
	arrive(&passed);
	join(one);
	join(other);
	return 0;
}
