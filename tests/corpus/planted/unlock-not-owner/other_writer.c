/* SPDX-License-Identifier: MIT */
/* other_writer.c - one thread takes a read/write lock for writing, and another thread releases it. */
/* expect: unlock-not-owner threads=closer objects=file sites=unlocks */
/* also: exit-holding-lock */
#include "corpus.h"

static pthread_rwlock_t file = PTHREAD_RWLOCK_INITIALIZER;
static int opened, closed;

static void *opener(void *unused)
{
	pthread_rwlock_wrlock(&file);
	arrive(&opened);
	await(&closed, 1);
	return unused;
}

static void *closer(void *unused)
{
	i_am("closer");
	await(&opened, 1);
	pthread_rwlock_unlock(&file); /* SITE unlocks */
	arrive(&closed);
	return unused;
}

int main(void)
{
	pthread_t first = start(opener, NULL), second = start(closer, NULL);

	OBJECT(file);
	join(first);
	join(second);
	return 0;
}
