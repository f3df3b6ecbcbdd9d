/* SPDX-License-Identifier: MIT */
/* try_failed.c - a thread ignores the result of sem_trywait, and posts the semaphore that another thread holds. */
/* expect: extra-post threads=hasty,slow,next objects=log sites=post,slow,next */
#include "corpus.h"

static sem_t log;
static int slow_in, posted, next_in;

static void *is_slow(void *unused)
{
	i_am("slow");
	sem_wait(&log); /* SITE slow */
	arrive(&slow_in);
	await(&next_in, 1);
	sem_post(&log);
	return unused;
}

static void *is_next(void *unused)
{
	i_am("next");
	await(&posted, 1);
	sem_wait(&log); /* SITE next */
	arrive(&next_in);
	nap_ms(5);
	sem_post(&log);
	return unused;
}

int main(void)
{
	pthread_t slow, next;

	OBJECT(log);
	i_am("hasty");
	sem_init(&log, 0, 1);
	sem_trywait(&log);
	sem_post(&log);
	slow = start(is_slow, NULL);
	next = start(is_next, NULL);
	await(&slow_in, 1);
	sem_trywait(&log);
	sem_post(&log); /* SITE post */
	arrive(&posted);
	join(slow);
	join(next);
	return 0;
}
