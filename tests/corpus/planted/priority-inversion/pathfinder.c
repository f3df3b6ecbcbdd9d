/* SPDX-License-Identifier: MIT */
/* pathfinder.c - a thread of high priority waits for a bus; a thread of low priority holds the bus, and a third thread keeps it from running. */
/* expect: priority-inversion threads=urgent,lowly objects=bus sites=urgent-wants */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER;
static int held, waiting, urgent_tid;

static void become(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		exit(77);
}

static void *lowly(void *unused)
{
	become(5);
	i_am("lowly");
	pthread_mutex_lock(&bus); /* SITE lowly-has */
	arrive(&held);
	await(&waiting, 1);
	pthread_mutex_unlock(&bus);
	return unused;
}

static void *busy(void *unused)
{
	become(10);
	await_asleep(&urgent_tid);
	for (struct timespec end = in_ms(CLOCK_MONOTONIC, 50), now = {0, 0};
	     now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec);)
		clock_gettime(CLOCK_MONOTONIC, &now);
	arrive(&waiting);
	return unused;
}

static void *urgent(void *unused)
{
	become(20);
	i_am("urgent");
	await(&held, 1);
	set_tid(&urgent_tid);
	pthread_mutex_lock(&bus); /* SITE urgent-wants */
	pthread_mutex_unlock(&bus);
	return unused;
}

int main(void)
{
	pthread_t threads[3];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	OBJECT(bus);
	threads[0] = start(lowly, NULL);
	threads[1] = start(urgent, NULL);
	threads[2] = start(busy, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	return 0;
}
