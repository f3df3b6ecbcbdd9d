/* SPDX-License-Identifier: MIT */
/* semaphores.c - two binary semaphores guard a port and a buffer; two threads take them in opposite orders. */
/* expect: deadlock threads=sender,receiver objects=port,buffer sites=sender-wants,receiver-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"

static sem_t port, buffer;
static int both;

/* Both semaphores have been used as locks before the deadlock. */
static void use(sem_t *lock)
{
	sem_wait(lock);
	sem_post(lock);
}

static void *sender(void *unused)
{
	i_am("sender");
	use(&port);
	use(&buffer);
	meet(&both, 2);
	sem_wait(&port);
	meet(&both, 4);
	for_ever();
	sem_wait(&buffer); /* SITE sender-wants */
	sem_post(&buffer);
	sem_post(&port);
	return unused;
}

static void *receiver(void *unused)
{
	i_am("receiver");
	use(&port);
	use(&buffer);
	meet(&both, 2);
	sem_wait(&buffer);
	meet(&both, 4);
	for_ever();
	sem_wait(&port); /* SITE receiver-wants */
	sem_post(&port);
	sem_post(&buffer);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(port);
	OBJECT(buffer);
	sem_init(&port, 0, 1);
	sem_init(&buffer, 0, 1);
	first = start(sender, NULL);
	second = start(receiver, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
