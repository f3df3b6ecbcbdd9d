/* SPDX-License-Identifier: MIT */
/* exec_at_work.c - a process becomes another program while its threads hold locks and wait. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int tids[2];

static void *waiter(void *unused)
{
	pthread_mutex_lock(&lock);
	set_tid(&tids[0]);
	pthread_cond_wait(&never, &lock);
	return unused;
}

static void *holder(void *unused)
{
	await_asleep(&tids[0]);
	pthread_mutex_lock(&lock);
	set_tid(&tids[1]);
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	start(waiter, NULL);
	start(holder, NULL);
	await_asleep(&tids[1]);
	execlp("true", "true", NULL);
	return 1;
}
