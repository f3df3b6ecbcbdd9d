/* SPDX-License-Identifier: MIT */
/* join_ring.c - main waits for a worker, which waits for another worker, which waits for main. */
/* expect: deadlock threads=main,first,second sites=joins */
/* run: hangs 3 */
#include "corpus.h"

static pthread_t threads[3];
static int ready;

static void *run(void *number)
{
	long me = (long)number;
	static const char *const names[] = {"main", "first", "second"};

	i_am(names[me]);
	await(&ready, 1);
	for_ever();
	pthread_join(threads[(me + 1) % 3], NULL); /* SITE joins */
	return NULL;
}

int main(void)
{
	threads[0] = pthread_self();
	for (long i = 1; i < 3; i++)
		threads[i] = start(run, (void *)i);
	arrive(&ready);
	run(NULL);
	return 0;
}
