/* SPDX-License-Identifier: MIT */
/* pool_killed.c - a server is ended by a signal while its joinable workers wait and the jobs that were signalled are done. */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, taken, busy, go_on, idle;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!items) {
			if (taken == 3) {
				for_ever();
				arrive(&idle);
			}
			pthread_cond_wait(&filled, &lock);
		}
		items--;
		taken++;
		pthread_mutex_unlock(&lock);
		arrive(&busy);
		await(&go_on, 1);
		pthread_mutex_lock(&lock);
	}
	return unused;
}

static void add(void)
{
	pthread_mutex_lock(&lock);
	items++;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	start(worker, NULL);
	start(worker, NULL);
	add();
	add();
	await(&busy, 2);
	add(); /* nobody waits: who is done first will see it */
	arrive(&go_on);
	for_ever();
	for (;;)
		pause();
}
