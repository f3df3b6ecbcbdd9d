/* SPDX-License-Identifier: MIT */
/* once.c - a library initialises itself under a lock; another caller holds that lock while it waits for the initialisation. */
/* expect: deadlock threads=loader,user objects=registry,ready sites=loader-wants,user-wants */
/* also: lock-order-inversion */
/* run: hangs 3 */
#include "corpus.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t ready = PTHREAD_ONCE_INIT;
static int begun, held;

static void initialise(void)
{
	arrive(&begun);
	await(&held, 1);
	for_ever();
	pthread_mutex_lock(&registry); /* SITE loader-wants */
	pthread_mutex_unlock(&registry);
}

static void *loader(void *unused)
{
	i_am("loader");
	pthread_once(&ready, initialise);
	return unused;
}

static void *user(void *unused)
{
	i_am("user");
	await(&begun, 1);
	pthread_mutex_lock(&registry);
	arrive(&held);
	for_ever();
	pthread_once(&ready, initialise); /* SITE user-wants */
	pthread_mutex_unlock(&registry);
	return unused;
}

int main(void)
{
	pthread_t first, second;

	OBJECT(registry);
	OBJECT(ready);
	first = start(loader, NULL);
	second = start(user, NULL);
	for_ever();
	join(first);
	join(second);
	return 0;
}
