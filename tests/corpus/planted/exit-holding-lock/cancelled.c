/* SPDX-License-Identifier: MIT */
/* cancelled.c - a thread is cancelled in its critical section and has no clean-up handler. */
/* expect: exit-holding-lock threads=victim objects=log_lock sites=locks */
#include "corpus.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int held;

static void *victim(void *unused)
{
	i_am("victim");
	pthread_mutex_lock(&log_lock); /* SITE locks */
	arrive(&held);
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	pthread_t thread = start(victim, NULL);

	OBJECT(log_lock);
	await(&held, 1);
	pthread_cancel(thread);
	join(thread);
	return 0;
}
