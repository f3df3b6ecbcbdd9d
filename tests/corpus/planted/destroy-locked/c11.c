/* SPDX-License-Identifier: MIT */
/* c11.c - a thread of the C standard destroys a connection while another thread holds its lock. */
/* expect: destroy-locked threads=main,sender objects=connection sites=destroys */
#include "corpus.h"
#include <threads.h>

static mtx_t connection;
static int held, destroyed;

static int sender(void *unused)
{
	i_am("sender");
	mtx_lock(&connection);
	arrive(&held);
	await(&destroyed, 1);
	mtx_unlock(&connection);
	return unused != NULL;
}

int main(void)
{
	thrd_t thread;

	i_am("main");
	OBJECT(connection);
	mtx_init(&connection, mtx_plain);
	thrd_create(&thread, sender, NULL);
	await(&held, 1);
	mtx_destroy(&connection); /* SITE destroys */
	arrive(&destroyed);
	thrd_join(thread, NULL);
	return 0;
}
