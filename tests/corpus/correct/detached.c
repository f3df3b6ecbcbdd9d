/* SPDX-License-Identifier: MIT */
/* detached.c - threads are detached at birth, by their creator and by themselves. */
#include "corpus.h"
#include <threads.h>

static void *run(void *self)
{
	if (self)
		pthread_detach(pthread_self());
	return NULL;
}

static int run_c11(void *unused)
{
	return unused != NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	thrd_t c11;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, NULL))
		return 1;
	pthread_attr_destroy(&attr);
	pthread_detach(start(run, NULL));
	start(run, "");
	thrd_create(&c11, run_c11, NULL);
	thrd_detach(c11);
	await_threads(1);
	return 0;
}
