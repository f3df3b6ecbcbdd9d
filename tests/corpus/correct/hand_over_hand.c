/* SPDX-License-Identifier: MIT */
/* hand_over_hand.c - a list is walked hand over hand: each lock is taken while the lock before it is held. */
#include "corpus.h"

struct node {
	pthread_mutex_t lock;
	long value;
	struct node *next;
};

static struct node *head;

static void *walk(void *unused)
{
	for (int i = 0; i < 50; i++) {
		struct node *node = head;

		pthread_mutex_lock(&node->lock);
		while (node->next) {
			struct node *next = node->next;

			pthread_mutex_lock(&next->lock);
			next->value++;
			pthread_mutex_unlock(&node->lock);
			node = next;
		}
		pthread_mutex_unlock(&node->lock);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 10; i++) {
		struct node *node = calloc(1, sizeof(*node));

		pthread_mutex_init(&node->lock, NULL);
		node->next = head;
		head = node;
	}
	for (int i = 0; i < 3; i++)
		threads[i] = start(walk, NULL);
	for (int i = 0; i < 3; i++)
		join(threads[i]);
	while (head) {
		struct node *next = head->next;

		pthread_mutex_destroy(&head->lock);
		free(head);
		head = next;
	}
	return 0;
}
