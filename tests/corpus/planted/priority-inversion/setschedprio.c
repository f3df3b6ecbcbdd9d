/* SPDX-License-Identifier: MIT */
/* setschedprio.c - pthread_setschedprio lowers a holder below the thread that waits for its read/write lock. */
/* expect: priority-inversion threads=urgent,lowly objects=table sites=wants */
#include "corpus.h"
#include <sched.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int held, urgent_tid;

static void become(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	if (pthread_setschedparam(pthread_self(), SCHED_RR, &param))
		exit(77);
}

static void *lowly(void *unused)
{
	i_am("lowly");
	become(60);
	pthread_setschedprio(pthread_self(), 3);
	pthread_rwlock_rdlock(&table);
	arrive(&held);
	await_asleep(&urgent_tid);
	nap_ms(50);
	pthread_rwlock_unlock(&table);
	return unused;
}

static void *urgent(void *unused)
{
	i_am("urgent");
	become(40);
	await(&held, 1);
	set_tid(&urgent_tid);
	pthread_rwlock_wrlock(&table); /* SITE wants */
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t first = start(lowly, NULL), second = start(urgent, NULL);

	OBJECT(table);
	join(first);
	join(second);
	return 0;
}
