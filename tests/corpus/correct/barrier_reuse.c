/* SPDX-License-Identifier: MIT */
/* barrier_reuse.c - a barrier serves many rounds, and the first thread to leave a second barrier destroys it. */
#include "corpus.h"

static pthread_barrier_t round_end;

static void *run(void *unused)
{
	for (int i = 0; i < 30; i++)
		pthread_barrier_wait(&round_end);
	return unused;
}

static void *serial(void *barrier)
{
	if (pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
		pthread_barrier_destroy(barrier);
		free(barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_barrier_t *once = malloc(sizeof(*once));
	pthread_t threads[6];

	pthread_barrier_init(&round_end, NULL, 3);
	pthread_barrier_init(once, NULL, 3);
	for (int i = 0; i < 6; i++)
		threads[i] = i < 3 ? start(run, NULL) : start(serial, once);
	for (int i = 0; i < 6; i++)
		join(threads[i]);
	pthread_barrier_destroy(&round_end);
	return 0;
}
