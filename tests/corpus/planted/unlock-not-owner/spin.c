/* SPDX-License-Identifier: MIT */
/* spin.c - a spin lock is released by an interrupt thread that did not take it. */
/* expect: unlock-not-owner threads=interrupt objects=slot sites=unlocks */
/* also: unlock-unlocked */
#include "corpus.h"

static pthread_spinlock_t slot;
static int held, released;

static void *interrupt(void *unused)
{
	i_am("interrupt");
	await(&held, 1);
	pthread_spin_unlock(&slot); /* SITE unlocks */
	arrive(&released);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	thread = start(interrupt, NULL);
	pthread_spin_lock(&slot);
	arrive(&held);
	await(&released, 1);
	join(thread);
	return 0;
}
