/* SPDX-License-Identifier: MIT */
/* gave_up.c - one of three workers leaves after an error in the second round; the others wait for it. */
/* expect: barrier-stuck threads=one,two objects=round_end sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static pthread_barrier_t round_end;

struct worker {
	const char *name;
	int rounds;
};

static void *work(void *argument)
{
	const struct worker *worker = argument;

	i_am(worker->name);
	for (int round = 0; round < worker->rounds; round++) {
		if (round == 1)
			for_ever();
		pthread_barrier_wait(&round_end); /* SITE waits */
	}
	return NULL;
}

int main(void)
{
	static struct worker workers[] = {{"one", 2}, {"two", 2}, {"three", 1}};
	pthread_t threads[3];

	OBJECT(round_end);
	pthread_barrier_init(&round_end, NULL, 3);
	for (int i = 0; i < 3; i++)
		threads[i] = start(work, &workers[i]);
	for_ever();
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
