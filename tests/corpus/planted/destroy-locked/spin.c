/* SPDX-License-Identifier: MIT */
/* spin.c - a spin lock is destroyed while a thread holds it. */
/* expect: destroy-locked threads=main,worker objects=slot sites=destroys */
/* also: use-after-destroy */
#include "corpus.h"

static pthread_spinlock_t slot;
static int held, destroyed;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_spin_lock(&slot);
	arrive(&held);
	await(&destroyed, 1);
	pthread_spin_unlock(&slot);
	return unused;
}

int main(void)
{
	pthread_t thread;

	i_am("main");
	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	thread = start(worker, NULL);
	await(&held, 1);
	pthread_spin_destroy(&slot); /* SITE destroys */
	arrive(&destroyed);
	join(thread);
	return 0;
}
