/* SPDX-License-Identifier: MIT */
/* order_by_create.c - main takes its lock order before it creates the thread with the other order. */
#include "corpus.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *backwards(void *unused)
{
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return unused;
}

static void *creator(void *unused)
{
	join(start(backwards, NULL));
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_mutex_lock(&a);
	pthread_mutex_lock(&b);
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	thread = start(creator, NULL);
	join(thread);
	return 0;
}
