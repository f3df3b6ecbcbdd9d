/* SPDX-License-Identifier: MIT */
/* sleeper.c - a thread sleeps for more than a second while it holds a lock that another thread wants. */
/* expect: long-hold threads=sleeper objects=lock sites=locks */
/* options: */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held;

static void *sleeper(void *unused)
{
	i_am("sleeper");
	pthread_mutex_lock(&lock); /* SITE locks */
	arrive(&held);
	nap_ms(1100);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(sleeper, NULL);

	OBJECT(lock);
	await(&held, 1);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	join(thread);
	return 0;
}
