/* SPDX-License-Identifier: MIT */
/* gives_up.c - a thread tries 20000 times for a lock that a reader holds, and then goes on without it. */
/* expect: spinning-trylock threads=spinner,reader objects=table sites=try,take */
/* record: -l 3 */
#include "corpus.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int taken, over;

static void *reads(void *unused)
{
	i_am("reader");
	pthread_rwlock_rdlock(&table); /* SITE take */
	arrive(&taken);
	await(&over, 1);
	pthread_rwlock_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t reader;

	OBJECT(table);
	i_am("spinner");
	reader = start(reads, NULL);
	await(&taken, 1);
	for (int i = 0; i < 20000; i++)
		if (pthread_rwlock_trywrlock(&table) == 0) /* SITE try */
			return 1;
	arrive(&over);
	join(reader);
	return 0;
}
