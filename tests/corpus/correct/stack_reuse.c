/* SPDX-License-Identifier: MIT */
/* stack_reuse.c - locks live in stack frames; the next call has other locks at the same addresses. */
#include "corpus.h"

struct locks {
	pthread_mutex_t a, b;
};

static __attribute__((noinline)) void forwards(void)
{
	struct locks locks = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

	pthread_mutex_lock(&locks.a);
	pthread_mutex_lock(&locks.b);
	pthread_mutex_unlock(&locks.b);
	pthread_mutex_unlock(&locks.a);
}

static __attribute__((noinline)) void backwards(void)
{
	struct locks locks = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

	pthread_mutex_lock(&locks.b);
	pthread_mutex_lock(&locks.a);
	pthread_mutex_unlock(&locks.a);
	pthread_mutex_unlock(&locks.b);
}

static void *run(void *other)
{
	for (int i = 0; i < 10; i++) {
		forwards();
		if (other)
			backwards();
	}
	return NULL;
}

int main(void)
{
	pthread_t first = start(run, NULL), second;

	join(first);
	second = start(run, ""); /* with the stack of the first */
	join(second);
	return 0;
}
