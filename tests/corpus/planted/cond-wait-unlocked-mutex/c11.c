/* SPDX-License-Identifier: MIT */
/* c11.c - a thread of the C standard unlocks too early, and then waits. */
/* expect: cond-wait-unlocked-mutex threads=main objects=answer,lock sites=waits */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;
static cnd_t answer;

int main(void)
{
	struct timespec soon;

	i_am("main");
	OBJECT(answer);
	OBJECT(lock);
	mtx_init(&lock, mtx_plain);
	cnd_init(&answer);
	mtx_lock(&lock);
	mtx_unlock(&lock);
	soon = in_ms(CLOCK_REALTIME, 5);
	cnd_timedwait(&answer, &lock, &soon); /* SITE waits */
	mtx_unlock(&lock);
	cnd_destroy(&answer);
	mtx_destroy(&lock);
	return 0;
}
