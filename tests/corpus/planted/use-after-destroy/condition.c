/* SPDX-License-Identifier: MIT */
/* condition.c - a worker signals its end on a condition that main has already destroyed. */
/* expect: use-after-destroy threads=worker objects=ended sites=signals */
/* options: --long-hold 1h --suspects */
#include "corpus.h"

static pthread_cond_t ended;
static int destroyed;

static void *worker(void *unused)
{
	i_am("worker");
	await(&destroyed, 1);
	pthread_cond_signal(&ended); /* SITE signals */
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(ended);
	pthread_cond_init(&ended, NULL);
	thread = start(worker, NULL);
	pthread_cond_destroy(&ended);
	arrive(&destroyed);
	join(thread);
	return 0;
}
