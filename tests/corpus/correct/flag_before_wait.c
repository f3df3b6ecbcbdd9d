/* SPDX-License-Identifier: MIT */
/* flag_before_wait.c - the signal comes before the wait; the flag says that no wait is needed. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int is_ready, signalled;

static void *waiter(void *unused)
{
	await(&signalled, 1);
	pthread_mutex_lock(&lock);
	while (!is_ready)
		pthread_cond_wait(&ready, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(waiter, NULL);

	pthread_mutex_lock(&lock);
	is_ready = 1;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&lock);
	arrive(&signalled);
	join(thread);
	return 0;
}
