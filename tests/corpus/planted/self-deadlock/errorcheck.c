/* SPDX-License-Identifier: MIT */
/* errorcheck.c - a thread locks an error-checking mutex twice, and ignores the result. */
/* expect: self-deadlock threads=main objects=settings sites=again */
#include "corpus.h"

static pthread_mutex_t settings;

int main(void)
{
	i_am("main");
	OBJECT(settings);
	init_mutex(&settings, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_lock(&settings);
	if (pthread_mutex_lock(&settings) != EDEADLK) /* SITE again */
		abort();
	pthread_mutex_unlock(&settings);
	pthread_mutex_destroy(&settings);
	return 0;
}
