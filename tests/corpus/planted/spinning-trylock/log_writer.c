/* SPDX-License-Identifier: MIT */
/* log_writer.c - a thread spins on a mutex that another thread holds while it waits for a slow disk. */
/* expect: spinning-trylock threads=spinner,disk objects=log sites=try,take */
/* record: -l 3 */
#include "corpus.h"

static pthread_mutex_t log = PTHREAD_MUTEX_INITIALIZER;
static int taken;

static void *writes(void *unused)
{
	i_am("spinner");
	await(&taken, 1);
	while (pthread_mutex_trylock(&log) != 0) /* SITE try */
		;
	pthread_mutex_unlock(&log);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(log);
	i_am("disk");
	thread = start(writes, NULL);
	pthread_mutex_lock(&log); /* SITE take */
	arrive(&taken);
	nap_ms(30);
	pthread_mutex_unlock(&log);
	join(thread);
	return 0;
}
