/* SPDX-License-Identifier: MIT */
/* errorcheck.c - an error-checking mutex that nobody holds refuses to be unlocked. */
/* expect: unlock-unlocked threads=main objects=lock sites=unlocks */
#include "corpus.h"

static pthread_mutex_t lock;

int main(void)
{
	i_am("main");
	OBJECT(lock);
	init_mutex(&lock, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	if (pthread_mutex_unlock(&lock) != EPERM) /* SITE unlocks */
		abort();
	pthread_mutex_destroy(&lock);
	return 0;
}
