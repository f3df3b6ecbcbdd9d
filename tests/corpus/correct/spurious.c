/* SPDX-License-Identifier: MIT */
/* spurious.c - a waiter is woken many times for nothing; it looks and waits again. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int value, looks;

static void *waiter(void *unused)
{
	pthread_mutex_lock(&lock);
	while (value != 1) {
		arrive(&looks);
		pthread_cond_wait(&change, &lock);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(waiter, NULL);

	for (int i = 1; i <= 10; i++) {
		await(&looks, i);
		pthread_mutex_lock(&lock);
		value = i == 10;
		pthread_cond_signal(&change);
		pthread_mutex_unlock(&lock);
	}
	join(thread);
	return 0;
}
