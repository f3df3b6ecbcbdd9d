/* SPDX-License-Identifier: MIT */
/* recursive.c - a detached thread locks a recursive mutex twice, unlocks it once, and ends. */
/* expect: exit-holding-lock threads=worker objects=tree */
#include "corpus.h"

static pthread_mutex_t tree;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_detach(pthread_self());
	pthread_mutex_lock(&tree); /* SITE locks */
	pthread_mutex_lock(&tree);
	pthread_mutex_unlock(&tree);
	return unused;
}

int main(void)
{
	OBJECT(tree);
	init_mutex(&tree, PTHREAD_MUTEX_RECURSIVE);
	start(worker, NULL);
	await_threads(1);
	return 0;
}
