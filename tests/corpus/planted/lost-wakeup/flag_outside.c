/* SPDX-License-Identifier: MIT */
/* flag_outside.c - a thread looks at the flag without the lock; the flag is set and signalled before its wait begins. */
/* expect: lost-wakeup threads=worker objects=stop sites=waits */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop = PTHREAD_COND_INITIALIZER;
static int stopping, looked, signalled;

static void *worker(void *unused)
{
	i_am("worker");
	if (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		arrive(&looked);
		await(&signalled, 1);
		pthread_mutex_lock(&lock);
		for_ever();
		pthread_cond_wait(&stop, &lock); /* SITE waits */
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(void)
{
	pthread_t thread = start(worker, NULL);

	OBJECT(stop);
	await(&looked, 1);
	__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
	pthread_cond_signal(&stop);
	arrive(&signalled);
	for_ever();
	join(thread);
	return 0;
}
