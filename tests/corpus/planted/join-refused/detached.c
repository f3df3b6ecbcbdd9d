/* SPDX-License-Identifier: MIT */
/* detached.c - main waits for a thread that it has detached, and goes on at once. */
/* expect: join-refused threads=main sites=joins */
#include "corpus.h"

static int go;

static void *worker(void *unused)
{
	await(&go, 1);
	return unused;
}

int main(void)
{
	pthread_t thread = start(worker, NULL);

	i_am("main");
	pthread_detach(thread);
	if (pthread_join(thread, NULL) != EINVAL) /* SITE joins */
		abort();
	arrive(&go);
	await_threads(1);
	return 0;
}
