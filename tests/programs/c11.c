/* SPDX-License-Identifier: MIT */
/* c11.c - the routines of <threads.h>, with and without waits. */
#define _GNU_SOURCE
#include <threads.h>

#include "show.h"

static mtx_t plain, recursive;
static cnd_t cond;
static once_flag flag = ONCE_FLAG_INIT;
static int turn, runs;

static void once(void)
{
	runs++;
}

static int contend(void *arg)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 600000);

	(void)arg;
	SHOW(mtx_trylock(&plain));
	SHOW(mtx_timedlock(&plain, &long_ago));
	arrive();
	SHOW(mtx_timedlock(&plain, &later));
	SHOW(mtx_unlock(&plain));
	SHOW(mtx_unlock(&recursive));
	return 7;
}

static int wait_turn(void *exits)
{
	mtx_lock(&plain);
	arrive();
	while (turn == 0)
		cnd_wait(&cond, &plain);
	call_once(&flag, once);
	mtx_unlock(&plain);
	/* only one thread: libgcc has its own once for the first thread that unwinds */
	if (exits)
		thrd_exit(-3);
	return 0;
}

static int detached(void *arg)
{
	arrive();
	mtx_lock(&plain);
	*(int *)arg = 1;
	cnd_signal(&cond);
	mtx_unlock(&plain);
	return 0;
}

int main(void)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 600000);
	thrd_t thread, second;
	int value, done = 0;

	SHOW(mtx_init(&plain, mtx_timed));
	SHOW(mtx_init(&recursive, mtx_plain | mtx_recursive));
	SHOW(mtx_init(&plain, 99));
	SHOW(cnd_init(&cond));
	SHOW(mtx_lock(&recursive));
	SHOW(mtx_trylock(&recursive));
	SHOW(mtx_lock(&plain));
	thrd_create(&thread, contend, NULL);
	let_block();
	mtx_unlock(&plain);
	SHOW(thrd_join(thread, &value));
	SHOW(value);
	SHOW(mtx_unlock(&recursive));
	SHOW(mtx_unlock(&recursive));

	SHOW(mtx_lock(&plain));
	SHOW(cnd_timedwait(&cond, &plain, &long_ago));
	SHOW(mtx_unlock(&plain));
	thrd_create(&thread, wait_turn, &turn);
	let_block();
	thrd_create(&second, wait_turn, NULL);
	let_block();
	mtx_lock(&plain);
	turn = 1;
	SHOW(cnd_broadcast(&cond));
	mtx_unlock(&plain);
	SHOW(thrd_join(second, NULL));
	SHOW(thrd_join(thread, &value));
	SHOW(value);
	SHOW(runs);

	mtx_lock(&plain);
	thrd_create(&thread, detached, &done);
	SHOW(thrd_detach(thread));
	let_block();
	while (!done)
		cnd_timedwait(&cond, &plain, &later);
	mtx_unlock(&plain);
	while (threads_alive() > 1)
		nap();
	cnd_destroy(&cond);
	mtx_destroy(&recursive);
	mtx_destroy(&plain);
	return 0;
}
