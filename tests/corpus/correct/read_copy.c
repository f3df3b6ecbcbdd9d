/* SPDX-License-Identifier: MIT */
/* read_copy.c - readers follow a pointer without a lock; writers copy, replace, and free the old data when it has no reader left. */
#include "corpus.h"

struct version {
	long value;
};

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;
static struct version *current;
static int readers;

static void *reader(void *unused)
{
	for (int i = 0; i < 200; i++) {
		__atomic_fetch_add(&readers, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&current, __ATOMIC_SEQ_CST)->value < 0)
			abort();
		__atomic_fetch_sub(&readers, 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

static void *writer(void *unused)
{
	for (int i = 0; i < 20; i++) {
		struct version *next = malloc(sizeof(*next)), *old;

		pthread_mutex_lock(&writers);
		next->value = current->value + 1;
		old = __atomic_exchange_n(&current, next, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&readers, __ATOMIC_SEQ_CST))
			nap_ms(0);
		free(old);
		pthread_mutex_unlock(&writers);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	long value;

	current = calloc(1, sizeof(*current));
	for (int i = 0; i < 4; i++)
		threads[i] = start(i % 2 ? writer : reader, NULL);
	for (int i = 0; i < 4; i++)
		join(threads[i]);
	value = current->value;
	free(current);
	return value != 40;
}
