/* SPDX-License-Identifier: MIT */
/* both_hang.c - two threads wait for ever on one condition with two mutexes. */
/* expect: cond-two-mutexes threads=left,right objects=change,left_lock,right_lock sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER, right_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;

struct side {
	const char *name;
	pthread_mutex_t *lock;
};

static void *side(void *argument)
{
	const struct side *me = argument;

	i_am(me->name);
	pthread_mutex_lock(me->lock);
	for_ever();
	pthread_cond_wait(&change, me->lock); /* SITE waits */
	return NULL;
}

int main(void)
{
	static struct side sides[] = {{"left", &left_lock}, {"right", &right_lock}};
	pthread_t first = start(side, &sides[0]), second = start(side, &sides[1]);

	OBJECT(change);
	OBJECT(left_lock);
	OBJECT(right_lock);
	for_ever();
	join(first);
	join(second);
	return 0;
}
