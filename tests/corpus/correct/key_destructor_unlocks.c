/* SPDX-License-Identifier: MIT */
/* key_destructor_unlocks.c - a thread ends with its lock; a destructor of thread-specific data unlocks it. */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

static void *run(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_setspecific(key, &lock);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	pthread_key_create(&key, unlock);
	first = start(run, NULL);
	second = start(run, NULL);
	join(first);
	join(second);
	return 0;
}
