/* SPDX-License-Identifier: MIT */
/* stranger.c - a thread unlocks a mutex that another one holds. */
/* expect: unlock-not-owner threads=owner,stranger objects=lock sites=unlocks */
/* also: unlock-unlocked unlock-not-owner */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held, unlocked;

static void *owner(void *unused)
{
	i_am("owner");
	pthread_mutex_lock(&lock); /* SITE locks */
	arrive(&held);
	await(&unlocked, 1);
	return unused;
}

static void *stranger(void *unused)
{
	i_am("stranger");
	await(&held, 1);
	pthread_mutex_unlock(&lock); /* SITE unlocks */
	arrive(&unlocked);
	return unused;
}

int main(void)
{
	pthread_t first = start(owner, NULL), second = start(stranger, NULL);

	OBJECT(lock);
	join(first);
	join(second);
	return 0;
}
