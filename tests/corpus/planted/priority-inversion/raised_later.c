/* SPDX-License-Identifier: MIT */
/* raised_later.c - main raises a controller above the logger that holds the lock the controller will need. */
/* expect: priority-inversion threads=controller,logger objects=buffer sites=controller-wants */
#include "corpus.h"
#include <sched.h>

static pthread_rwlock_t buffer = PTHREAD_RWLOCK_INITIALIZER;
static int held, raised, controller_tid;

static void *controller(void *unused)
{
	i_am("controller");
	await(&raised, 1);
	set_tid(&controller_tid);
	pthread_rwlock_wrlock(&buffer); /* SITE controller-wants */
	pthread_rwlock_unlock(&buffer);
	return unused;
}

static void *logger(void *unused)
{
	i_am("logger");
	pthread_rwlock_wrlock(&buffer);
	arrive(&held);
	await_asleep(&controller_tid);
	nap_ms(50);
	pthread_rwlock_unlock(&buffer);
	return unused;
}

int main(void)
{
	struct sched_param low = {.sched_priority = 2}, high = {.sched_priority = 40};
	pthread_t first, second;

	OBJECT(buffer);
	first = start(controller, NULL);
	second = start(logger, NULL);
	await(&held, 1);
	if (pthread_setschedparam(second, SCHED_FIFO, &low) ||
	    pthread_setschedparam(first, SCHED_FIFO, &high))
		return 77;
	arrive(&raised);
	join(first);
	join(second);
	return 0;
}
