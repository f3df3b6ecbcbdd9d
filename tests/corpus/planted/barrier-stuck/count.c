/* SPDX-License-Identifier: MIT */
/* count.c - a barrier is made for one thread more than the program has. */
/* expect: barrier-stuck threads=one,two objects=meet_up sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static pthread_barrier_t meet_up;

static void *worker(void *name)
{
	i_am(name);
	for_ever();
	pthread_barrier_wait(&meet_up); /* SITE waits */
	return NULL;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(meet_up);
	pthread_barrier_init(&meet_up, NULL, 3); /* SITE init */
	first = start(worker, "one");
	second = start(worker, "two");
	for_ever();
	join(first);
	join(second);
	return 0;
}
