/* SPDX-License-Identifier: MIT */
/* late_starter.c - three runners wait for the starting shot; one comes too late to hear it. */
/* expect: lost-wakeup threads=late objects=shot sites=waits */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t shot = PTHREAD_COND_INITIALIZER;
static int tids[2], fired;

static void *runner(void *tid)
{
	pthread_mutex_lock(&lock);
	set_tid(tid);
	pthread_cond_wait(&shot, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *late(void *unused)
{
	i_am("late");
	await(&fired, 1);
	pthread_mutex_lock(&lock);
	for_ever();
	pthread_cond_wait(&shot, &lock); /* SITE waits */
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	OBJECT(shot);
	threads[0] = start(runner, &tids[0]);
	threads[1] = start(runner, &tids[1]);
	threads[2] = start(late, NULL);
	await_asleep(&tids[0]);
	await_asleep(&tids[1]);
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&shot);
	pthread_mutex_unlock(&lock);
	join(threads[0]);
	join(threads[1]);
	arrive(&fired);
	for_ever();
	join(threads[2]);
	return 0;
}
