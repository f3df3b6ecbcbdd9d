/* SPDX-License-Identifier: MIT */
/* errorcheck.c - an error-checking mutex refuses a condition wait, because it is not locked. */
/* expect: cond-wait-unlocked-mutex threads=main objects=filled,lock sites=waits */
#include "corpus.h"

static pthread_mutex_t lock;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;

int main(void)
{
	i_am("main");
	OBJECT(filled);
	OBJECT(lock);
	init_mutex(&lock, PTHREAD_MUTEX_ERRORCHECK);
	if (pthread_cond_wait(&filled, &lock) != EPERM) /* SITE waits */
		abort();
	return 0;
}
