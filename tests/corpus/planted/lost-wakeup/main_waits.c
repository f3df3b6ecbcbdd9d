/* SPDX-License-Identifier: MIT */
/* main_waits.c - a thread says that it is done and ends before main waits to hear it. */
/* expect: lost-wakeup threads=main objects=done sites=waits */
/* run: hangs 1 */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;
static cnd_t done;

static int work(void *unused)
{
	mtx_lock(&lock);
	cnd_signal(&done);
	mtx_unlock(&lock);
	return unused != NULL;
}

int main(void)
{
	thrd_t thread;

	i_am("main");
	OBJECT(done);
	mtx_init(&lock, mtx_plain);
	cnd_init(&done);
	thrd_create(&thread, work, NULL);
	thrd_detach(thread);
	await_threads(1);
	mtx_lock(&lock);
	for_ever();
	cnd_wait(&done, &lock); /* SITE waits */
	mtx_unlock(&lock);
	return 0;
}
