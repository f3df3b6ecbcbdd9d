/* SPDX-License-Identifier: MIT */
/* second_round.c - a signal ends each round of work; in the second round it comes too early, without a flag. */
/* expect: lost-wakeup threads=main objects=done sites=waits */
/* run: hangs 1 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int round_now, waiting, signalled;

static void *worker(void *unused)
{
	await_asleep(&waiting);
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	await(&round_now, 1);
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	arrive(&signalled);
	return unused;
}

int main(void)
{
	i_am("main");
	OBJECT(done);
	pthread_detach(start(worker, NULL));
	pthread_mutex_lock(&lock);
	set_tid(&waiting);
	pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	arrive(&round_now);
	await(&signalled, 1);
	pthread_mutex_lock(&lock);
	for_ever();
	pthread_cond_wait(&done, &lock); /* SITE waits */
	pthread_mutex_unlock(&lock);
	return 0;
}
