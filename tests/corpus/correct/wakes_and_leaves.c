/* SPDX-License-Identifier: MIT */
/* wakes_and_leaves.c - a broadcast wakes twenty waiters, who leave one after another through the mutex. */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;
static cnd_t go;
static int going, waiting;

static int run(void *unused)
{
	mtx_lock(&lock);
	waiting++;
	while (!going)
		cnd_wait(&go, &lock);
	mtx_unlock(&lock);
	return unused != NULL;
}

int main(void)
{
	thrd_t threads[20];

	mtx_init(&lock, mtx_timed);
	cnd_init(&go);
	for (int i = 0; i < 20; i++)
		thrd_create(&threads[i], run, NULL);
	for (int ready = 0; ready < 20;) {
		mtx_lock(&lock);
		ready = waiting;
		mtx_unlock(&lock);
		nap_ms(1);
	}
	mtx_lock(&lock);
	going = 1;
	cnd_broadcast(&go);
	mtx_unlock(&lock);
	for (int i = 0; i < 20; i++)
		thrd_join(threads[i], NULL);
	cnd_destroy(&go);
	mtx_destroy(&lock);
	return 0;
}
