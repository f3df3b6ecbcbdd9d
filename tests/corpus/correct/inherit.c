/* SPDX-License-Identifier: MIT */
/* inherit.c - a thread of high priority waits for a thread of low priority, which inherits its priority through the mutex. */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t bus;
static int held, urgent_tid;

static void become(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		exit(77);
}

static void *lowly(void *unused)
{
	become(5);
	pthread_mutex_lock(&bus);
	arrive(&held);
	await_asleep(&urgent_tid);
	nap_ms(30);
	pthread_mutex_unlock(&bus);
	return unused;
}

static void *urgent(void *unused)
{
	become(20);
	await(&held, 1);
	set_tid(&urgent_tid);
	pthread_mutex_lock(&bus);
	pthread_mutex_unlock(&bus);
	return unused;
}

int main(void)
{
	pthread_mutexattr_t attr;
	pthread_t first, second;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&bus, &attr);
	first = start(lowly, NULL);
	second = start(urgent, NULL);
	join(first);
	join(second);
	return 0;
}
