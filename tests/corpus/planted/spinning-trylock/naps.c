/* SPDX-License-Identifier: MIT */
/* naps.c - a thread tries for a spin lock and naps now and then, while another thread sorts a table under the lock. */
/* expect: spinning-trylock threads=spinner,sorter objects=table sites=try,take */
/* record: -l 3 */
#include "corpus.h"

static pthread_spinlock_t table;
static int taken, tries;

static void *asks(void *unused)
{
	i_am("spinner");
	await(&taken, 1);
	while (pthread_spin_trylock(&table) != 0) { /* SITE try */
		if (tries % 10 == 0)
			usleep(50);
		arrive(&tries);
	}
	pthread_spin_unlock(&table);
	return unused;
}

int main(void)
{
	pthread_t thread;

	OBJECT(table);
	i_am("sorter");
	pthread_spin_init(&table, PTHREAD_PROCESS_PRIVATE);
	thread = start(asks, NULL);
	pthread_spin_lock(&table); /* SITE take */
	arrive(&taken);
	await(&tries, 3000);
	pthread_spin_unlock(&table);
	join(thread);
	return 0;
}
