/* SPDX-License-Identifier: MIT */
/* later.c - two threads lock in opposite orders, by luck one after the other. */
/* expect: lock-order-inversion threads=reader,writer objects=head,data sites=reader-second,writer-second */
#include "corpus.h"

static pthread_mutex_t head = PTHREAD_MUTEX_INITIALIZER, data = PTHREAD_MUTEX_INITIALIZER;
static int first_done;

static void *reader(void *unused)
{
	i_am("reader");
	pthread_mutex_lock(&head);
	pthread_mutex_lock(&data); /* SITE reader-second */
	pthread_mutex_unlock(&data);
	pthread_mutex_unlock(&head);
	arrive(&first_done);
	return unused;
}

static void *writer(void *unused)
{
	i_am("writer");
	await(&first_done, 1);
	pthread_mutex_lock(&data);
	pthread_mutex_lock(&head); /* SITE writer-second */
	pthread_mutex_unlock(&head);
	pthread_mutex_unlock(&data);
	return unused;
}

int main(void)
{
	pthread_t first = start(reader, NULL), second = start(writer, NULL);

	OBJECT(head);
	OBJECT(data);
	join(first);
	join(second);
	return 0;
}
