/* SPDX-License-Identifier: MIT */
/* join_each_other.c - two threads join each other. */
/* expect: deadlock threads=first,second sites=joins */
/* run: hangs 2 */
#include "corpus.h"

static pthread_t threads[2];
static int ready, tid;

static void *run(void *number)
{
	long me = (long)number;

	i_am(me ? "second" : "first");
	await(&ready, 1);
	if (me)
		await_asleep(&tid);
	else
		set_tid(&tid);
	for_ever();
	/* The library may notice a ring of two threads; then the program tries again. */
	while (pthread_join(threads[!me], NULL)) /* SITE joins */
		pause();
	return NULL;
}

int main(void)
{
	for (long i = 0; i < 2; i++)
		threads[i] = start(run, (void *)i);
	arrive(&ready);
	pthread_exit(NULL);
}
