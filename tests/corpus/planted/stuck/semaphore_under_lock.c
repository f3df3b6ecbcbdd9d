/* SPDX-License-Identifier: MIT */
/* semaphore_under_lock.c - a clerk waits for a ticket while it holds the lock of the counter; the printer of tickets needs that lock. */
/* expect: stuck threads=clerk,printer objects=counter,ticket sites=waits,comes */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t counter = PTHREAD_MUTEX_INITIALIZER;
static sem_t ticket;
static int inside;

static void *clerk(void *unused)
{
	i_am("clerk");
	pthread_mutex_lock(&counter);
	arrive(&inside);
	for_ever();
	sem_wait(&ticket); /* SITE waits */
	pthread_mutex_unlock(&counter);
	return unused;
}

static void *printer(void *unused)
{
	i_am("printer");
	await(&inside, 1);
	for_ever();
	pthread_mutex_lock(&counter); /* SITE comes */
	sem_post(&ticket);
	pthread_mutex_unlock(&counter);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(counter);
	OBJECT(ticket);
	sem_init(&ticket, 0, 0);
	first = start(clerk, NULL);
	second = start(printer, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
