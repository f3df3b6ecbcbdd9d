/* SPDX-License-Identifier: MIT */
/* spin.c - a spin lock is taken after it has been destroyed. */
/* expect: use-after-destroy threads=late objects=slot sites=locks */
/* also: use-after-destroy */
#include "corpus.h"

static pthread_spinlock_t slot;
static int destroyed;

static void *late(void *unused)
{
	i_am("late");
	await(&destroyed, 1);
	pthread_spin_lock(&slot); /* SITE locks */
	pthread_spin_unlock(&slot);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	thread = start(late, NULL);
	pthread_spin_destroy(&slot);
	arrive(&destroyed);
	join(thread);
	return 0;
}
