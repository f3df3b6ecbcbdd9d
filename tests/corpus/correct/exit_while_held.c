/* SPDX-License-Identifier: MIT */
/* exit_while_held.c - main leaves the process while another thread is at work with its lock held. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held;

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	arrive(&held);
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	pthread_detach(start(worker, NULL));
	await(&held, 1);
	return 0;
}
