/* SPDX-License-Identifier: MIT */
/* overwritten.c - the handle of the second thread overwrites the handle of the first. */
/* expect: thread-leak threads=first */
#include "corpus.h"
#include <threads.h>

static int run(void *name)
{
	i_am(name);
	return 0;
}

int main(void)
{
	thrd_t thread;

	thrd_create(&thread, run, "first");
	await_threads(1);
	thrd_create(&thread, run, "second");
	thrd_join(thread, NULL);
	return 0;
}
