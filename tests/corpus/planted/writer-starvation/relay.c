/* SPDX-License-Identifier: MIT */
/* relay.c - two readers take a lock by turns, each before the other leaves: the editor waits until they stop. */
/* expect: writer-starvation threads=editor objects=page sites=edit,look */
#include "corpus.h"

#define ROUNDS 300

static pthread_rwlock_t page = PTHREAD_RWLOCK_INITIALIZER;
static int entered, editor;

/* Holds the lock from just before the other reader leaves until just after that reader takes it again. */
static void *reads(void *first)
{
	for (int turn = first ? 1 : 2; turn <= ROUNDS; turn += 2) {
		await(&entered, turn - 1);
		pthread_rwlock_rdlock(&page); /* SITE look */
		if (turn == 1)
			await_asleep(&editor);
		arrive(&entered);
		await(&entered, turn < ROUNDS ? turn + 1 : ROUNDS);
		/* a fast machine is done with all turns before the wait counts as long */
		if (turn == ROUNDS / 2)
			nap_ms(30);
		pthread_rwlock_unlock(&page);
	}
	return NULL;
}

int main(void)
{
	pthread_t readers[2];

	OBJECT(page);
	i_am("editor");
	readers[0] = start(reads, &page);
	nap_ms(10);
	readers[1] = start(reads, NULL);
	set_tid(&editor);
	pthread_rwlock_wrlock(&page); /* SITE edit */
	pthread_rwlock_unlock(&page);
	join(readers[0]);
	join(readers[1]);
	return 0;
}
