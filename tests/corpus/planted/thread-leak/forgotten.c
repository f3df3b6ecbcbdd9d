/* SPDX-License-Identifier: MIT */
/* forgotten.c - main learns from a condition that the worker is done, and forgets to join it. */
/* expect: thread-leak threads=worker */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int is_done;

static void *worker(void *unused)
{
	i_am("worker");
	pthread_mutex_lock(&lock);
	is_done = 1;
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	start(worker, NULL); /* SITE creates */
	pthread_mutex_lock(&lock);
	while (!is_done)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	await_threads(1);
	return 0;
}
