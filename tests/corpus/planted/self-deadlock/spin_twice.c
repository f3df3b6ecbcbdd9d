/* SPDX-License-Identifier: MIT */
/* spin_twice.c - a thread spins for a lock that it holds itself. */
/* expect: self-deadlock threads=main objects=slot sites=again */
/* run: spins 1 */
#include "corpus.h"

static pthread_spinlock_t slot;

int main(void)
{
	i_am("main");
	OBJECT(slot);
	pthread_spin_init(&slot, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_lock(&slot);
	for_ever();
	pthread_spin_lock(&slot); /* SITE again */
	return 0;
}
