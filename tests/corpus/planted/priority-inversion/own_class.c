/* SPDX-License-Identifier: MIT */
/* own_class.c - a thread raises its own priority by sched_setscheduler, and waits for an ordinary thread. */
/* expect: priority-inversion threads=urgent,ordinary objects=lock sites=wants */
#include "corpus.h"
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held, urgent_tid;

static void *ordinary(void *unused)
{
	i_am("ordinary");
	pthread_mutex_lock(&lock);
	arrive(&held);
	await_asleep(&urgent_tid);
	nap_ms(50);
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	struct sched_param param = {.sched_priority = 30};
	pthread_t thread = start(ordinary, NULL);

	await(&held, 1);
	i_am("urgent");
	OBJECT(lock);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 77;
	set_tid(&urgent_tid);
	pthread_mutex_lock(&lock); /* SITE wants */
	pthread_mutex_unlock(&lock);
	join(thread);
	return 0;
}
