/* SPDX-License-Identifier: MIT */
/* late_answer.c - a client waits for an answer while it holds the lock of its table; a reader wants that lock. */
/* expect: wait-holding-lock threads=client,reader objects=table sites=locks,waits,reads */
/* also: long-hold */
/* options: */
#include "corpus.h"

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static sem_t answer;
static int held;

static void *client(void *unused)
{
	i_am("client");
	pthread_mutex_lock(&table); /* SITE locks */
	arrive(&held);
	while (sem_wait(&answer)) /* SITE waits */
		;
	pthread_mutex_unlock(&table);
	return unused;
}

static void *reader(void *unused)
{
	i_am("reader");
	await(&held, 1);
	pthread_mutex_lock(&table); /* SITE reads */
	pthread_mutex_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	OBJECT(table);
	sem_init(&answer, 0, 0);
	threads[0] = start(client, NULL);
	threads[1] = start(reader, NULL);
	await(&held, 1);
	nap_ms(1300);
	sem_post(&answer);
	join(threads[0]);
	join(threads[1]);
	return 0;
}
