/* SPDX-License-Identifier: MIT */
/* both_polite.c - each of two threads waits for the other to go first. */
/* expect: stuck threads=left,right objects=left_went,right_went sites=waits */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left_went = PTHREAD_COND_INITIALIZER, right_went = PTHREAD_COND_INITIALIZER;
static int gone;

static void go_after(pthread_cond_t *other, pthread_cond_t *mine)
{
	pthread_mutex_lock(&lock);
	while (!gone) {
		for_ever();
		pthread_cond_wait(other, &lock); /* SITE waits */
	}
	gone++;
	pthread_cond_signal(mine);
	pthread_mutex_unlock(&lock);
}

static void *left(void *unused)
{
	i_am("left");
	go_after(&right_went, &left_went);
	return unused;
}

static void *right(void *unused)
{
	i_am("right");
	go_after(&left_went, &right_went);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(left_went);
	OBJECT(right_went);
	first = start(left, NULL);
	second = start(right, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
