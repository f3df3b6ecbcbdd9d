/* SPDX-License-Identifier: MIT */
/* held_for_long.c - a thread holds a lock for long, and no other thread wants it meanwhile. */
/* options: --long-hold 50ms */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *other(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_mutex_lock(&lock);
	nap_ms(100);
	pthread_mutex_unlock(&lock);
	join(start(other, NULL));
	return 0;
}
