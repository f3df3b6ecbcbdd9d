/* SPDX-License-Identifier: MIT */
/* plain.c - two threads wait on one condition at the same time, each with a mutex of its own. */
/* expect: cond-two-mutexes threads=left,right objects=change,left_lock,right_lock sites=left-waits,right-waits */
#include "corpus.h"

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int tids[2];

static void *left(void *unused)
{
	i_am("left");
	pthread_mutex_lock(&left_lock);
	set_tid(&tids[0]);
	pthread_cond_wait(&change, &left_lock); /* SITE left-waits */
	pthread_mutex_unlock(&left_lock);
	return unused;
}

static void *right(void *unused)
{
	i_am("right");
	pthread_mutex_lock(&right_lock);
	set_tid(&tids[1]);
	pthread_cond_wait(&change, &right_lock); /* SITE right-waits */
	pthread_mutex_unlock(&right_lock);
	return unused;
}

int main(void)
{
	pthread_t first = start(left, NULL), second = start(right, NULL);

	OBJECT(change);
	OBJECT(left_lock);
	OBJECT(right_lock);
	await_asleep(&tids[0]);
	await_asleep(&tids[1]);
	pthread_cond_broadcast(&change);
	join(first);
	join(second);
	return 0;
}
