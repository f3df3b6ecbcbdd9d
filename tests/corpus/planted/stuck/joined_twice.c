/* SPDX-License-Identifier: MIT */
/* joined_twice.c - two threads join a third thread; one of them waits for ever. */
/* expect: stuck */
/* run: hangs 2 */
#include "corpus.h"

static pthread_t worker;
static int waiting[2];

static void *work(void *unused)
{
	await_asleep(&waiting[0]);
	await_asleep(&waiting[1]);
	return unused;
}

static void wait_for_it(int *tid)
{
	for_ever();
	set_tid(tid);
	pthread_join(worker, NULL);
}

static void *other(void *unused)
{
	wait_for_it(&waiting[1]);
	return unused;
}

int main(void)
{
	pthread_t second;

	worker = start(work, NULL);
	second = start(other, NULL);
	wait_for_it(&waiting[0]);
	join(second);
	return 0;
}
