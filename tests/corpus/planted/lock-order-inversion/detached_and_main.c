/* SPDX-License-Identifier: MIT */
/* detached_and_main.c - main locks in one order; a detached thread that has ended by then locked in the other order. */
/* expect: lock-order-inversion threads=helper,main objects=cache,disk sites=helper-second,main-second */
#include "corpus.h"

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t disk = PTHREAD_RWLOCK_INITIALIZER;

static void *helper(void *unused)
{
	i_am("helper");
	pthread_mutex_lock(&cache);
	pthread_rwlock_wrlock(&disk); /* SITE helper-second */
	pthread_rwlock_unlock(&disk);
	pthread_mutex_unlock(&cache);
	return unused;
}

int main(void)
{
	i_am("main");
	OBJECT(cache);
	OBJECT(disk);
	pthread_detach(start(helper, NULL));
	await_threads(1);
	pthread_rwlock_rdlock(&disk);
	pthread_mutex_lock(&cache); /* SITE main-second */
	pthread_mutex_unlock(&cache);
	pthread_rwlock_unlock(&disk);
	return 0;
}
