/* SPDX-License-Identifier: MIT */
/* after_timeout.c - a timed lock times out; the owner unlocks, and the thread that gave up unlocks too. */
/* expect: unlock-unlocked threads=patient objects=lock sites=unlocks */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held, timed_out, released;

static void *patient(void *unused)
{
	struct timespec soon;

	i_am("patient");
	await(&held, 1);
	soon = in_ms(CLOCK_REALTIME, 5);
	pthread_mutex_timedlock(&lock, &soon);
	arrive(&timed_out);
	await(&released, 1);
	pthread_mutex_unlock(&lock); /* SITE unlocks */
	return unused;
}

int main(void)
{
	pthread_t thread = start(patient, NULL);

	OBJECT(lock);
	pthread_mutex_lock(&lock);
	arrive(&held);
	await(&timed_out, 1);
	pthread_mutex_unlock(&lock);
	arrive(&released);
	join(thread);
	return 0;
}
