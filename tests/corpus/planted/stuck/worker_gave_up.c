/* SPDX-License-Identifier: MIT */
/* worker_gave_up.c - main waits until three workers report that they are ready, but one worker returns early. */
/* expect: stuck threads=main objects=ready sites=waits */
/* run: hangs 1 */
#include "corpus.h"

static sem_t ready;

static void *worker(void *number)
{
	if (number == (void *)1)
		return NULL;
	sem_post(&ready);
	return NULL;
}

int main(void)
{
	sem_init(&ready, 0, 0);
	i_am("main");
	OBJECT(ready);
	for (intptr_t i = 0; i < 3; i++)
		pthread_detach(start(worker, (void *)i));
	sem_wait(&ready);
	sem_wait(&ready);
	for_ever();
	sem_wait(&ready); /* SITE waits */
	return 0;
}
