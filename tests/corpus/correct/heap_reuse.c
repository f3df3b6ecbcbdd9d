/* SPDX-License-Identifier: MIT */
/* heap_reuse.c - the heap gives the addresses of freed locks to new ones, which are locked in the other order. */
#include "corpus.h"

struct pair {
	pthread_mutex_t first, second; /* as std::mutex is: neither initialised by a call, nor destroyed */
};

static void *use(void *memory)
{
	struct pair *pair = memory;

	pthread_mutex_lock(&pair->first);
	pthread_mutex_lock(&pair->second);
	pthread_mutex_unlock(&pair->second);
	pthread_mutex_unlock(&pair->first);
	return NULL;
}

static void *use_other_way(void *memory)
{
	struct pair *pair = memory;

	pthread_mutex_lock(&pair->second);
	pthread_mutex_lock(&pair->first);
	pthread_mutex_unlock(&pair->first);
	pthread_mutex_unlock(&pair->second);
	return NULL;
}

int main(void)
{
	int again = 0;

	for (int i = 0; i < 20; i++) {
		struct pair *pair = calloc(1, sizeof(*pair)), *other;
		struct pair *at = pair;

		join(start(use, pair));
		free(pair);
		other = calloc(1, sizeof(*other));
		again += other == at;
		join(start(use_other_way, other));
		free(other);
	}
	return again == 0;
}
