/* SPDX-License-Identifier: MIT */
/* spin_and_mutex.c - one thread takes a spin lock inside a mutex; another takes the mutex inside the spin lock. */
/* expect: lock-order-inversion threads=fast,slow objects=slots,pages sites=fast-second,slow-second */
#include "corpus.h"

static pthread_spinlock_t slots;
static pthread_mutex_t pages = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static void *fast(void *unused)
{
	i_am("fast");
	pthread_spin_lock(&slots);
	pthread_mutex_lock(&pages); /* SITE fast-second */
	pthread_mutex_unlock(&pages);
	pthread_spin_unlock(&slots);
	arrive(&turn);
	return unused;
}

static void *slow(void *unused)
{
	i_am("slow");
	await(&turn, 1);
	pthread_mutex_lock(&pages);
	pthread_spin_lock(&slots); /* SITE slow-second */
	pthread_spin_unlock(&slots);
	pthread_mutex_unlock(&pages);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(slots);
	OBJECT(pages);
	pthread_spin_init(&slots, PTHREAD_PROCESS_PRIVATE);
	first = start(fast, NULL);
	second = start(slow, NULL);
	join(first);
	join(second);
	pthread_spin_destroy(&slots);
	return 0;
}
