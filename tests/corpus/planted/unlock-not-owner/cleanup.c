/* SPDX-License-Identifier: MIT */
/* cleanup.c - the clean-up handler of a cancelled thread unlocks a mutex that main has locked. */
/* expect: unlock-not-owner threads=victim objects=lock sites=unlocks */
/* also: unlock-unlocked unlock-not-owner */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex); /* SITE unlocks */
}

static void *victim(void *unused)
{
	i_am("victim");
	pthread_cleanup_push(unlock, &lock);
	arrive(&ready);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return unused;
}

int main(void)
{
	pthread_t thread = start(victim, NULL);

	OBJECT(lock);
	await(&ready, 1);
	pthread_mutex_lock(&lock);
	pthread_cancel(thread);
	join(thread);
	pthread_mutex_unlock(&lock);
	return 0;
}
