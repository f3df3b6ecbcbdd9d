/* SPDX-License-Identifier: MIT */
/* mutex.c - a late worker locks a mutex that main has destroyed. */
/* expect: use-after-destroy threads=late objects=lock sites=locks */
/* also: use-after-destroy */
#include "corpus.h"

static pthread_mutex_t lock;
static int destroyed;

static void *late(void *unused)
{
	i_am("late");
	await(&destroyed, 1);
	pthread_mutex_lock(&lock); /* SITE locks */
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(lock);
	pthread_mutex_init(&lock, NULL);
	thread = start(late, NULL);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_mutex_destroy(&lock); /* SITE destroys */
	arrive(&destroyed);
	join(thread);
	return 0;
}
