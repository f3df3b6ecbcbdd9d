/* SPDX-License-Identifier: MIT */
/* pool_idle_at_exit.c - main returns while the detached workers of its pool wait for more work. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int items, left = 100;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!items)
			pthread_cond_wait(&filled, &lock);
		items--;
		pthread_mutex_unlock(&lock);
		pthread_mutex_lock(&lock);
		if (--left == 0)
			pthread_cond_signal(&emptied);
	}
	return unused;
}

int main(void)
{
	for (int i = 0; i < 4; i++)
		pthread_detach(start(worker, NULL));
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		items++;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	while (left)
		pthread_cond_wait(&emptied, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}
