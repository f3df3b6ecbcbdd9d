/* SPDX-License-Identifier: MIT */
/* own_orders.c - every thread has its own pair of locks, in structures of one type, and locks them as it likes. */
#include "corpus.h"

struct pair {
	pthread_mutex_t a, b;
};

static void *run(void *number)
{
	struct pair *mine = calloc(1, sizeof(*mine));

	for (int i = 0; i < 50; i++) {
		int other = (i + (int)(long)number) % 2;

		pthread_mutex_lock(other ? &mine->b : &mine->a);
		pthread_mutex_lock(other ? &mine->a : &mine->b);
		pthread_mutex_unlock(&mine->a);
		pthread_mutex_unlock(&mine->b);
	}
	free(mine);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++)
		threads[i] = start(run, (void *)i);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	return 0;
}
