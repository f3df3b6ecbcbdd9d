/* SPDX-License-Identifier: MIT */
/* signal_after_unlock.c - conditions are signalled after the mutex has been released, as POSIX allows. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, over;

static void *consumer(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!items && !over)
			pthread_cond_wait(&filled, &lock);
		if (!items)
			break;
		items--;
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t threads[2] = {start(consumer, NULL), start(consumer, NULL)};

	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&lock);
		items++;
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&filled);
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_mutex_unlock(&lock);
	pthread_cond_broadcast(&filled);
	join(threads[0]);
	join(threads[1]);
	return 0;
}
