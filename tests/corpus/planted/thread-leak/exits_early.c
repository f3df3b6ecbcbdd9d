/* SPDX-License-Identifier: MIT */
/* exits_early.c - an error path returns from main before the join. */
/* expect: thread-leak threads=worker */
#include "corpus.h"

static void *worker(void *unused)
{
	i_am("worker");
	return unused;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE);
	if (pthread_create(&thread, &attr, worker, NULL))
		return 1;
	pthread_attr_destroy(&attr);
	await_threads(1);
	if (argc == 1)
		return argv[0] == NULL;
	join(thread);
	return 0;
}
