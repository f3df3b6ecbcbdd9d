/* SPDX-License-Identifier: MIT */
/* again.c - the late start of a module initializes its lock again while a worker holds it. */
/* expect: init-locked threads=worker objects=lock sites=locks,makes */
#include "corpus.h"

static pthread_mutex_t lock;
static int locked, made;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(&lock); /* SITE locks */
	arrive(&locked);
	await(&made, 1);
	return unused;
}

int main(void)
{
	pthread_t thread;

	i_am("main");
	OBJECT(lock);
	pthread_mutex_init(&lock, NULL);
	thread = start(worker, NULL);
	await(&locked, 1);
	pthread_mutex_init(&lock, NULL); /* SITE makes */
	arrive(&made);
	join(thread);
	return 0;
}
