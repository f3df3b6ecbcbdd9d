/* SPDX-License-Identifier: MIT */
/* forked_child.c - the threads of a worker process lock its queue and its index in opposite orders. */
/* expect: deadlock threads=adder,finder objects=queue,table sites=adder-wants,finder-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
/* status: 0 */
#include "corpus.h"

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, table = PTHREAD_MUTEX_INITIALIZER;
static int both;

static void *adder(void *unused)
{
	i_am("adder");
	pthread_mutex_lock(&queue);
	meet(&both, 2);
	for_ever();
	pthread_mutex_lock(&table); /* SITE adder-wants */
	return unused;
}

static void *finder(void *unused)
{
	i_am("finder");
	pthread_mutex_lock(&table);
	meet(&both, 2);
	for_ever();
	pthread_mutex_lock(&queue); /* SITE finder-wants */
	return unused;
}

int main(void)
{
	pid_t child;

	OBJECT(queue);
	OBJECT(table);
	pthread_mutex_lock(&queue);
	pthread_mutex_lock(&table);
	pthread_mutex_unlock(&table);
	pthread_mutex_unlock(&queue);
	child = fork();
	if (child == 0) {
		pthread_t first = start(adder, NULL), second = start(finder, NULL);

		for_ever();
		join(first);
		join(second);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
