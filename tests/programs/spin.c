/* SPDX-License-Identifier: MIT */
/* spin.c - every spin lock routine, with and without a wait. */
#define _GNU_SOURCE
#include <pthread.h>

#include "show.h"

static pthread_spinlock_t lock;

static void *other(void *arg)
{
	(void)arg;
	SHOW(pthread_spin_trylock(&lock));
	arrive();
	SHOW(pthread_spin_lock(&lock));
	SHOW(pthread_spin_unlock(&lock));
	return NULL;
}

int main(void)
{
	pthread_t thread;

	SHOW(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE));
	SHOW(pthread_spin_trylock(&lock));
	SHOW(pthread_spin_unlock(&lock));
	SHOW(pthread_spin_lock(&lock));
	pthread_create(&thread, NULL, other, NULL);
	let_spin(thread);
	pthread_spin_unlock(&lock);
	pthread_join(thread, NULL);
	SHOW(pthread_spin_destroy(&lock));
	return 0;
}
