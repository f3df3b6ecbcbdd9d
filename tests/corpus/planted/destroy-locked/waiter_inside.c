/* SPDX-License-Identifier: MIT */
/* waiter_inside.c - a condition is destroyed while a thread waits on it; the library waits for ever. */
/* expect: destroy-locked threads=main,waiter objects=filled sites=destroys */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled;
static int waiting;

static void *waiter(void *unused)
{
	i_am("waiter");
	pthread_mutex_lock(&lock);
	for_ever();
	set_tid(&waiting);
	pthread_cond_wait(&filled, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	i_am("main");
	OBJECT(filled);
	pthread_cond_init(&filled, NULL);
	thread = start(waiter, NULL);
	await_asleep(&waiting);
	for_ever();
	pthread_cond_destroy(&filled); /* SITE destroys */
	join(thread);
	return 0;
}
