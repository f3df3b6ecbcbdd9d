/* SPDX-License-Identifier: MIT */
/* c11.c - a plain mutex of the C standard is locked again after a condition wait. */
/* expect: self-deadlock threads=taker objects=lock sites=again */
/* run: hangs 2 */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;
static cnd_t filled;
static int items;

static int taker(void *unused)
{
	i_am("taker");
	mtx_lock(&lock);
	while (!items)
		cnd_wait(&filled, &lock);
	for_ever();
	mtx_lock(&lock); /* SITE again */
	return unused != NULL;
}

int main(void)
{
	thrd_t thread;

	OBJECT(lock);
	mtx_init(&lock, mtx_plain);
	cnd_init(&filled);
	thrd_create(&thread, taker, NULL);
	mtx_lock(&lock);
	items = 1;
	cnd_signal(&filled);
	mtx_unlock(&lock);
	for_ever();
	thrd_join(thread, NULL);
	return 0;
}
