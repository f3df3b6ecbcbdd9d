/* SPDX-License-Identifier: MIT */
/* exit_anyway.c - two detached threads deadlock; main does not need them and returns. */
/* expect: deadlock threads=left,right objects=a,b sites=left-wants,right-wants */
/* also: lock-order-inversion */
#include "corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int both, tids[2];

static void *left(void *unused)
{
	i_am("left");
	pthread_mutex_lock(&a);
	meet(&both, 2);
	set_tid(&tids[0]);
	pthread_mutex_lock(&b); /* SITE left-wants */
	return unused;
}

static void *right(void *unused)
{
	i_am("right");
	pthread_mutex_lock(&b);
	meet(&both, 2);
	set_tid(&tids[1]);
	pthread_mutex_lock(&a); /* SITE right-wants */
	return unused;
}

int main(void)
{
	OBJECT(a);
	OBJECT(b);
	pthread_detach(start(left, NULL));
	pthread_detach(start(right, NULL));
	await_asleep(&tids[0]);
	await_asleep(&tids[1]);
	return 0;
}
