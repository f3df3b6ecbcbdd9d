/* SPDX-License-Identifier: MIT */
/* stop_under_lock.c - main stops a service while it holds the lock that the worker needs to end. */
/* expect: deadlock threads=main,worker objects=service sites=main-joins,worker-wants */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t service = PTHREAD_MUTEX_INITIALIZER;
static int stopping;

static void *worker(void *unused)
{
	i_am("worker");
	await(&stopping, 1);
	for_ever();
	pthread_mutex_lock(&service); /* SITE worker-wants */
	pthread_mutex_unlock(&service);
	return unused;
}

int main(void)
{
	pthread_t thread = start(worker, NULL);

	i_am("main");
	OBJECT(service);
	pthread_mutex_lock(&service);
	arrive(&stopping);
	for_ever();
	pthread_join(thread, NULL); /* SITE main-joins */
	pthread_mutex_unlock(&service);
	return 0;
}
