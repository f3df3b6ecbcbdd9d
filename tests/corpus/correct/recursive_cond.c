/* SPDX-License-Identifier: MIT */
/* recursive_cond.c - a condition wait with a recursive mutex that is locked once. */
#include "corpus.h"

static pthread_mutex_t lock;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *taker(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!items)
		pthread_cond_wait(&filled, &lock);
	pthread_mutex_lock(&lock);
	items--;
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	init_mutex(&lock, PTHREAD_MUTEX_RECURSIVE);
	thread = start(taker, NULL);
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
	items = 1;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&lock);
	join(thread);
	return 0;
}
