/* SPDX-License-Identifier: MIT */
/* destroyed_after_broadcast.c - a condition is destroyed right after the broadcast that wakes all its waiters. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready, waiting;

static void *waiter(void *condition)
{
	pthread_mutex_lock(&lock);
	waiting++;
	if (!ready)
		pthread_cond_wait(condition, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_cond_t *condition = malloc(sizeof(*condition));
	pthread_t threads[3];

	pthread_cond_init(condition, NULL);
	for (int i = 0; i < 3; i++)
		threads[i] = start(waiter, condition);
	for (int seen = 0; seen < 3;) {
		pthread_mutex_lock(&lock);
		seen = waiting;
		if (seen == 3) {
			ready = 1;
			pthread_cond_broadcast(condition);
			pthread_cond_destroy(condition);
			free(condition);
		}
		pthread_mutex_unlock(&lock);
		nap_ms(1);
	}
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
