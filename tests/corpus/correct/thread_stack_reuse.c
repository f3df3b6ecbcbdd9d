/* SPDX-License-Identifier: MIT */
/* thread_stack_reuse.c - threads that overlap with others keep locks on their stacks; later threads get the same stacks. */
#include "corpus.h"

struct locks {
	pthread_mutex_t a, b;
};

static void *helper(void *argument)
{
	struct locks *locks = argument;

	pthread_mutex_lock(&locks->a);
	pthread_mutex_lock(&locks->b);
	pthread_mutex_unlock(&locks->b);
	pthread_mutex_unlock(&locks->a);
	return NULL;
}

static void *helper_other_way(void *argument)
{
	struct locks *locks = argument;

	pthread_mutex_lock(&locks->b);
	pthread_mutex_lock(&locks->a);
	pthread_mutex_unlock(&locks->a);
	pthread_mutex_unlock(&locks->b);
	return NULL;
}

/* Each owner has a helper that locks what is on the owner's stack. */
static void *owner(void *other_way)
{
	struct locks locks = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

	join(start(other_way ? helper_other_way : helper, &locks));
	return NULL;
}

int main(void)
{
	int gone = 0;

	for (int i = 0; i < 4; i++) {
		pthread_t thread;
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		if (pthread_create(&thread, &attr, owner, i % 2 ? "" : NULL))
			return 1;
		pthread_attr_destroy(&attr);
		await_threads(1);
		gone++;
	}
	return gone != 4;
}
