/* SPDX-License-Identifier: MIT */
/* sem_crosswise.c - two threads exchange two tokens: each thread waits for the token that the other posts, in opposite orders. */
#include "corpus.h"

static sem_t ping, pong;

static void *left(void *unused)
{
	for (int i = 0; i < 30; i++) {
		sem_post(&ping);
		sem_wait(&pong);
	}
	return unused;
}

static void *right(void *unused)
{
	for (int i = 0; i < 30; i++) {
		sem_wait(&ping);
		sem_post(&pong);
	}
	return unused;
}

int main(void)
{
	pthread_t first, second;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	first = start(left, NULL);
	second = start(right, NULL);
	join(first);
	join(second);
	/* No thread holds the tokens that are left. */
	sem_post(&ping);
	sem_post(&pong);
	sem_wait(&pong);
	sem_wait(&ping);
	return 0;
}
