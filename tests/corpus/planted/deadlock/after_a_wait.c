/* SPDX-License-Identifier: MIT */
/* after_a_wait.c - a condition wait takes its mutex back while the signaller wants the lock that the waiter holds. */
/* expect: deadlock threads=waiter,signaller objects=state,log_lock sites=waits,signaller-wants */
/* also: lock-order-inversion */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER, log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static int changed, waiting;

static void *waiter(void *unused)
{
	i_am("waiter");
	pthread_mutex_lock(&log_lock);
	pthread_mutex_lock(&state);
	set_tid(&waiting);
	while (!changed)
		pthread_cond_wait(&change, &state); /* SITE waits */
	pthread_mutex_unlock(&state);
	pthread_mutex_unlock(&log_lock);
	return unused;
}

static void *signaller(void *unused)
{
	i_am("signaller");
	await_asleep(&waiting);
	pthread_mutex_lock(&state);
	changed = 1;
	pthread_cond_signal(&change);
	for_ever();
	pthread_mutex_lock(&log_lock); /* SITE signaller-wants */
	pthread_mutex_unlock(&log_lock);
	pthread_mutex_unlock(&state);
	return unused;
}

int main(void)
{
	pthread_t first = start(waiter, NULL), second = start(signaller, NULL);

	OBJECT(state);
	OBJECT(log_lock);
	for_ever();
	join(first);
	join(second);
	return 0;
}
