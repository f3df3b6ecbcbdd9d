/* SPDX-License-Identifier: MIT */
/* failed_try.c - a thread tries for a lock, ignores the result, and unlocks. */
/* expect: unlock-not-owner threads=trier objects=lock sites=unlocks */
/* also: unlock-unlocked unlock-not-owner */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held, unlocked;

static void *trier(void *unused)
{
	i_am("trier");
	await(&held, 1);
	pthread_mutex_trylock(&lock);
	pthread_mutex_unlock(&lock); /* SITE unlocks */
	arrive(&unlocked);
	return unused;
}

int main(void)
{
	pthread_t thread = start(trier, NULL);

	OBJECT(lock);
	pthread_mutex_lock(&lock);
	arrive(&held);
	await(&unlocked, 1);
	pthread_mutex_unlock(&lock);
	join(thread);
	return 0;
}
