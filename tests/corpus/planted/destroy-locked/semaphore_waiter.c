/* SPDX-License-Identifier: MIT */
/* semaphore_waiter.c - a semaphore is destroyed while a thread waits for it. */
/* expect: destroy-locked threads=waiter,owner objects=slots sites=waits,destroys */
/* run: hangs 1 */
#include "corpus.h"

static sem_t slots;
static int waiting;

static void *waiter(void *unused)
{
	i_am("waiter");
	set_tid(&waiting);
	sem_wait(&slots); /* SITE waits */
	return unused;
}

int main(void)
{
	pthread_t thread;

	sem_init(&slots, 0, 0);
	OBJECT(slots);
	i_am("owner");
	thread = start(waiter, NULL);
	await_asleep(&waiting);
	sem_destroy(&slots); /* SITE destroys */
	for_ever();
	join(thread);
	return 0;
}
