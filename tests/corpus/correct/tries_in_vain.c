/* SPDX-License-Identifier: MIT */
/* tries_in_vain.c - a thread tries for a busy lock between jobs, now and then, or for a while before it waits. */
/* record: -l 3 */
#include "corpus.h"

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER, jobs = PTHREAD_MUTEX_INITIALIZER;
static int taken, done, waits;

/* The thread that gets the lock tidies up; no thread waits for that. */
static void *works(void *unused)
{
	await(&taken, 1);
	for (int i = 0; i < 3000; i++) {
		pthread_mutex_lock(&jobs);
		pthread_mutex_unlock(&jobs);
		if (pthread_mutex_trylock(&busy) == 0)
			pthread_mutex_unlock(&busy);
	}
	arrive(&done);
	return unused;
}

/* The thread looks now and then, not often. */
static void *looks(void *unused)
{
	await(&taken, 1);
	for (int i = 0; i < 50; i++) {
		if (pthread_mutex_trylock(&busy) == 0)
			pthread_mutex_unlock(&busy);
		nap_ms(1);
	}
	arrive(&done);
	return unused;
}

/* Adaptive locks do the same. */
static void *adapts(void *unused)
{
	await(&taken, 1);
	for (int i = 0; i < 5000; i++)
		if (pthread_mutex_trylock(&busy) == 0)
			return unused;
	set_tid(&waits);
	arrive(&done);
	pthread_mutex_lock(&busy);
	pthread_mutex_unlock(&busy);
	return unused;
}

int main(void)
{
	pthread_t worker = start(works, NULL), looker = start(looks, NULL), adaptive = start(adapts, NULL);

	pthread_mutex_lock(&busy);
	arrive(&taken);
	await(&done, 3);
	await_asleep(&waits);
	pthread_mutex_unlock(&busy);
	join(worker);
	join(looker);
	join(adaptive);
	return 0;
}
