/* SPDX-License-Identifier: MIT */
/* after_wait.c - a thread unlocks its mutex twice after a condition wait. */
/* expect: unlock-unlocked threads=waiter objects=lock sites=again */
#include "corpus.h"
#include <threads.h>

static mtx_t lock;
static cnd_t never;

static int waiter(void *unused)
{
	struct timespec soon = in_ms(CLOCK_REALTIME, 5);

	i_am("waiter");
	mtx_lock(&lock);
	cnd_timedwait(&never, &lock, &soon);
	mtx_unlock(&lock);
	mtx_unlock(&lock); /* SITE again */
	return unused != NULL;
}

int main(void)
{
	thrd_t thread;

	OBJECT(lock);
	mtx_init(&lock, mtx_timed);
	cnd_init(&never);
	thrd_create(&thread, waiter, NULL);
	thrd_join(thread, NULL);
	return 0;
}
