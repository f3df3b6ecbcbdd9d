/* SPDX-License-Identifier: MIT */
/* spin.c - spin locks guard two counters, one inside the other. */
#include "corpus.h"

static pthread_spinlock_t outer, inner;
static long counter;

static void *run(void *unused)
{
	for (int i = 0; i < 200; i++) {
		pthread_spin_lock(&outer);
		if (pthread_spin_trylock(&inner) == 0) {
			counter++;
			pthread_spin_unlock(&inner);
		}
		pthread_spin_unlock(&outer);
	}
	return unused;
}

int main(void)
{
	pthread_t first, second;

	pthread_spin_init(&outer, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&inner, PTHREAD_PROCESS_PRIVATE);
	first = start(run, NULL);
	second = start(run, NULL);
	join(first);
	join(second);
	pthread_spin_destroy(&inner);
	pthread_spin_destroy(&outer);
	return counter != 400;
}
