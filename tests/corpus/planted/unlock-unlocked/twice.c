/* SPDX-License-Identifier: MIT */
/* twice.c - an error path unlocks a mutex, and the clean-up unlocks it again. */
/* expect: unlock-unlocked threads=main objects=lock sites=again */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(int argc, char **argv)
{
	i_am("main");
	OBJECT(lock);
	pthread_mutex_lock(&lock);
	if (argc == 1)
		pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&lock); /* SITE again */
	return argv[0] == NULL;
}
