/* SPDX-License-Identifier: MIT */
/* spin.c - a spin lock is released twice. */
/* expect: unlock-unlocked threads=main objects=slot sites=again */
#include "corpus.h"

static pthread_spinlock_t slot;

int main(void)
{
	i_am("main");
	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_lock(&slot);
	pthread_spin_unlock(&slot);
	pthread_spin_unlock(&slot); /* SITE again */
	return 0;
}
