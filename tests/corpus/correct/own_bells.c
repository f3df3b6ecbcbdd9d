/* SPDX-License-Identifier: MIT */
/* own_bells.c - a worker makes a semaphore for each wait, takes its unit, and hands it to the thread that will wake it. */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t *waiter;
static int rung;

static void wait_for_bell(bool last)
{
	sem_t *bell = malloc(sizeof(*bell));

	sem_init(bell, 0, 1);
	sem_wait(bell);
	pthread_mutex_lock(&lock);
	waiter = bell;
	pthread_mutex_unlock(&lock);
	if (last)
		for_ever();
	sem_wait(bell);
	sem_destroy(bell);
	free(bell);
}

static void *worker(void *unused)
{
	for (int i = 0; i < 3; i++)
		wait_for_bell(i == 2);
	return unused;
}

int main(void)
{
	start(worker, NULL);
	while (rung < 2) {
		pthread_mutex_lock(&lock);
		if (waiter) {
			sem_post(waiter);
			waiter = NULL;
			rung++;
		}
		pthread_mutex_unlock(&lock);
		nap_ms(1);
	}
	pause();
	return 0;
}
