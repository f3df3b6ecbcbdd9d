/* SPDX-License-Identifier: MIT */
/* errorcheck.c - an error-checking mutex refuses an unlock by a thread that is not its owner. */
/* expect: unlock-not-owner threads=stranger objects=lock sites=unlocks */
#include "corpus.h"

static pthread_mutex_t lock;
static int held, refused;

static void *owner(void *unused)
{
	pthread_mutex_lock(&lock);
	arrive(&held);
	await(&refused, 1);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *stranger(void *unused)
{
	i_am("stranger");
	await(&held, 1);
	if (pthread_mutex_unlock(&lock) != EPERM) /* SITE unlocks */
		abort();
	arrive(&refused);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(lock);
	init_mutex(&lock, PTHREAD_MUTEX_ERRORCHECK);
	first = start(owner, NULL);
	second = start(stranger, NULL);
	join(first);
	join(second);
	pthread_mutex_destroy(&lock);
	return 0;
}
