/* SPDX-License-Identifier: MIT */
/* recursive.c - a recursive mutex is held during a long call that often locks and unlocks it. */
/* expect: long-hold threads=main objects=tree sites=locks */
/* options: --long-hold 100ms */
#include "corpus.h"

static pthread_mutex_t tree;
static int locked;

static void *other(void *unused)
{
	await(&locked, 1);
	pthread_mutex_lock(&tree);
	pthread_mutex_unlock(&tree);
	return unused;
}

int main(void)
{
	pthread_t waiter;

	i_am("main");
	OBJECT(tree);
	init_mutex(&tree, PTHREAD_MUTEX_RECURSIVE);
	waiter = start(other, NULL);
	pthread_mutex_lock(&tree); /* SITE locks */
	arrive(&locked);
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&tree);
		nap_ms(20);
		pthread_mutex_unlock(&tree);
	}
	pthread_mutex_unlock(&tree);
	join(waiter);
	return 0;
}
