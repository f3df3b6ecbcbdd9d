/* SPDX-License-Identifier: MIT */
/* once.c - pthread_once and call_once are called from many threads, and use locks of their own. */
#include "corpus.h"
#include <threads.h>

static pthread_once_t posix = PTHREAD_ONCE_INIT;
static once_flag c11 = ONCE_FLAG_INIT;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static int calls;

static void initialise(void)
{
	pthread_mutex_lock(&registry);
	calls++;
	pthread_mutex_unlock(&registry);
}

static void *run(void *unused)
{
	pthread_once(&posix, initialise);
	call_once(&c11, initialise);
	pthread_mutex_lock(&registry);
	pthread_mutex_unlock(&registry);
	return unused;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		threads[i] = start(run, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	return calls != 2;
}
