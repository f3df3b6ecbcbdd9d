/* SPDX-License-Identifier: MIT */
/* same_thread_cycle.c - one thread locks two mutexes in both orders; no other thread takes both. */
#include "corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *one_of_them(void *lock)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t first = start(one_of_them, &a), second = start(one_of_them, &b);

	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(i % 2 ? &a : &b);
		pthread_mutex_lock(i % 2 ? &b : &a);
		pthread_mutex_unlock(&a);
		pthread_mutex_unlock(&b);
	}
	join(first);
	join(second);
	return 0;
}
