/* SPDX-License-Identifier: MIT */
/* own.c - a queue is destroyed on a path that holds its lock. */
/* expect: destroy-locked threads=main objects=lock sites=destroys */
#include "corpus.h"

struct queue {
	pthread_mutex_t lock;
	int length;
};

static void destroy(struct queue *queue)
{
	pthread_mutex_destroy(&queue->lock); /* SITE destroys */
	free(queue);
}

int main(void)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	i_am("main");
	object("lock", &queue->lock);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_mutex_lock(&queue->lock); /* SITE locks */
	if (queue->length == 0)
		destroy(queue);
	return 0;
}
