/* SPDX-License-Identifier: MIT */
/* tried_first.c - a thread gets a lock by trylock, and holds it while it blocks for the other lock. */
/* expect: lock-order-inversion threads=main,trier objects=inbox,outbox sites=main-second,trier-second */
#include "corpus.h"

static pthread_mutex_t inbox = PTHREAD_MUTEX_INITIALIZER, outbox = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static void *trier(void *unused)
{
	i_am("trier");
	await(&turn, 1);
	if (pthread_mutex_trylock(&outbox) != 0)
		abort();
	pthread_mutex_lock(&inbox); /* SITE trier-second */
	pthread_mutex_unlock(&inbox);
	pthread_mutex_unlock(&outbox);
	return unused;
}

int main(void)
{
	pthread_t thread = start(trier, NULL);

	i_am("main");
	OBJECT(inbox);
	OBJECT(outbox);
	pthread_mutex_lock(&inbox);
	pthread_mutex_lock(&outbox); /* SITE main-second */
	pthread_mutex_unlock(&outbox);
	pthread_mutex_unlock(&inbox);
	arrive(&turn);
	join(thread);
	return 0;
}
