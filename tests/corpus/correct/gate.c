/* SPDX-License-Identifier: MIT */
/* gate.c - two lock orders; each thread locks the gate before it takes both locks. */
#include "corpus.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *other)
{
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&gate);
		pthread_mutex_lock(other ? &b : &a);
		pthread_mutex_lock(other ? &a : &b);
		pthread_mutex_unlock(&a);
		pthread_mutex_unlock(&b);
		pthread_mutex_unlock(&gate);
	}
	return NULL;
}

int main(void)
{
	pthread_t first = start(run, NULL), second = start(run, "");

	join(first);
	join(second);
	return 0;
}
