/* SPDX-License-Identifier: MIT */
/* c11.c - readers and writers wait on one condition of the C standard with a mutex each. */
/* expect: cond-two-mutexes threads=reader,writer objects=change,readers,writers sites=reader-waits,writer-waits */
#include "corpus.h"
#include <threads.h>

static mtx_t readers, writers;
static cnd_t change;
static int tids[2], over;

static int reader(void *unused)
{
	i_am("reader");
	mtx_lock(&readers);
	set_tid(&tids[0]);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		cnd_wait(&change, &readers); /* SITE reader-waits */
	mtx_unlock(&readers);
	return unused != NULL;
}

static int writer(void *unused)
{
	i_am("writer");
	mtx_lock(&writers);
	set_tid(&tids[1]);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
		cnd_wait(&change, &writers); /* SITE writer-waits */
	mtx_unlock(&writers);
	return unused != NULL;
}

int main(void)
{
	thrd_t threads[2];

	OBJECT(change);
	OBJECT(readers);
	OBJECT(writers);
	mtx_init(&readers, mtx_plain);
	mtx_init(&writers, mtx_plain);
	cnd_init(&change);
	thrd_create(&threads[0], reader, NULL);
	thrd_create(&threads[1], writer, NULL);
	await_asleep(&tids[0]);
	await_asleep(&tids[1]);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	cnd_broadcast(&change);
	thrd_join(threads[0], NULL);
	thrd_join(threads[1], NULL);
	return 0;
}
