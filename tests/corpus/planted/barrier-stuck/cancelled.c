/* SPDX-License-Identifier: MIT */
/* cancelled.c - one of three threads is cancelled before it comes to the barrier. */
/* expect: barrier-stuck threads=one,two objects=meet_up sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static pthread_barrier_t meet_up;
static int ready;

static void *comes(void *name)
{
	i_am(name);
	for_ever();
	pthread_barrier_wait(&meet_up); /* SITE waits */
	return NULL;
}

static void *cancelled(void *unused)
{
	arrive(&ready);
	pause();
	pthread_barrier_wait(&meet_up);
	return unused;
}

int main(void)
{
	pthread_t first, second, third;

	OBJECT(meet_up);
	pthread_barrier_init(&meet_up, NULL, 3);
	first = start(comes, "one");
	second = start(comes, "two");
	third = start(cancelled, NULL);
	await(&ready, 1);
	pthread_cancel(third);
	join(third);
	for_ever();
	join(first);
	join(second);
	return 0;
}
