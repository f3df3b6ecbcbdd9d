/* SPDX-License-Identifier: MIT */
/* between_look_and_wait.c - a signal without the lock comes between the look at the flag and the wait. */
/* expect: lost-wakeup threads=waiter objects=ready sites=waits */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int is_ready, looked, signalled;

static void *waiter(void *unused)
{
	i_am("waiter");
	pthread_mutex_lock(&lock);
	while (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) {
		arrive(&looked);
		await(&signalled, 1);
		for_ever();
		pthread_cond_wait(&ready, &lock); /* SITE waits */
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread = start(waiter, NULL);

	OBJECT(ready);
	await(&looked, 1);
	__atomic_store_n(&is_ready, 1, __ATOMIC_RELEASE);
	pthread_cond_signal(&ready);
	arrive(&signalled);
	for_ever();
	join(thread);
	return 0;
}
