/* SPDX-License-Identifier: MIT */
/* joined_in_all_ways.c - threads are joined by pthread_tryjoin_np, with time limits, by other threads, and after a cancellation. */
#include "corpus.h"

static int over;

static void *run(void *forever)
{
	if (forever)
		for (;;)
			pause();
	await(&over, 1);
	return NULL;
}

static void *joiner(void *thread)
{
	pthread_join(*(pthread_t *)thread, NULL);
	return NULL;
}

int main(void)
{
	pthread_t threads[5];
	struct timespec late;

	for (int i = 0; i < 5; i++)
		threads[i] = start(run, i == 4 ? "" : NULL);
	if (pthread_tryjoin_np(threads[0], NULL) != EBUSY)
		return 1;
	late = in_ms(CLOCK_REALTIME, 2);
	if (pthread_timedjoin_np(threads[1], NULL, &late) != ETIMEDOUT)
		return 1;
	arrive(&over);
	while (pthread_tryjoin_np(threads[0], NULL) == EBUSY)
		nap_ms(1);
	late = in_ms(CLOCK_REALTIME, 60000);
	pthread_timedjoin_np(threads[1], NULL, &late);
	late = in_ms(CLOCK_MONOTONIC, 60000);
	pthread_clockjoin_np(threads[2], NULL, CLOCK_MONOTONIC, &late);
	join(start(joiner, &threads[3]));
	pthread_cancel(threads[4]);
	join(threads[4]);
	return 0;
}
