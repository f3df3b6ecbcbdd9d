/* SPDX-License-Identifier: MIT */
/* one_too_many.c - three threads meet at a barrier for two: the third waits for ever. */
/* expect: barrier-stuck objects=pairs sites=waits */
/* run: hangs 1 */
#include "corpus.h"

static pthread_barrier_t pairs;
static int left;

static void *comes(void *unused)
{
	pthread_barrier_wait(&pairs); /* SITE waits */
	arrive(&left);
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	OBJECT(pairs);
	pthread_barrier_init(&pairs, NULL, 2);
	for (int i = 0; i < 3; i++)
		threads[i] = start(comes, NULL);
	await(&left, 2);
	for_ever();
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
