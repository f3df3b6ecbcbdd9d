/* SPDX-License-Identifier: MIT */
/* units_one_by_one.c - each of two cooks needs both pans, takes one pan, and waits for the other. */
/* expect: stuck threads=first,second objects=pans sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static sem_t pans;
static int both;

static void *cook(void *name)
{
	i_am(name);
	sem_wait(&pans);
	meet(&both, 2);
	for_ever();
	sem_wait(&pans); /* SITE waits */
	sem_post(&pans);
	sem_post(&pans);
	return NULL;
}

int main(void)
{
	pthread_t one, other;

	OBJECT(pans);
	sem_init(&pans, 0, 2);
	one = start(cook, "first");
	other = start(cook, "second");
	for_ever();
	join(one);
	join(other);
	return 0;
}
