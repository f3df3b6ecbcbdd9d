/* SPDX-License-Identifier: MIT */
/* barrier_under_lock.c - a worker waits at a barrier while it holds the lock that the other worker needs to get there. */
/* expect: deadlock|barrier-stuck threads=early,late objects=results,round_end sites=early-wants,late-wants */
/* also: barrier-stuck deadlock */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t results = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t round_end;
static int held;

static void *early(void *unused)
{
	i_am("early");
	pthread_mutex_lock(&results);
	arrive(&held);
	for_ever();
	pthread_barrier_wait(&round_end); /* SITE early-wants */
	pthread_mutex_unlock(&results);
	return unused;
}

static void *late(void *unused)
{
	i_am("late");
	await(&held, 1);
	for_ever();
	pthread_mutex_lock(&results); /* SITE late-wants */
	pthread_mutex_unlock(&results);
	pthread_barrier_wait(&round_end);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(results);
	OBJECT(round_end);
	pthread_barrier_init(&round_end, NULL, 2);
	first = start(early, NULL);
	second = start(late, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
