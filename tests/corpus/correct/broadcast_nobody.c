/* SPDX-License-Identifier: MIT */
/* broadcast_nobody.c - conditions are signalled and broadcast although no thread ever waits. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

static void *run(void *unused)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		pthread_cond_broadcast(&change);
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&change);
	}
	return unused;
}

int main(void)
{
	pthread_t thread = start(run, NULL);

	run(NULL);
	join(thread);
	pthread_cond_destroy(&change);
	return 0;
}
