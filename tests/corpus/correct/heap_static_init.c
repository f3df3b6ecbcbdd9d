/* SPDX-License-Identifier: MIT */
/* heap_static_init.c - a condition, a read/write lock and a semaphore are destroyed and freed; new ones are assigned into the same memory. */
#include "corpus.h"

struct box {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	pthread_rwlock_t table;
};

static void *use(void *argument)
{
	struct box *box = argument;

	pthread_rwlock_rdlock(&box->table);
	pthread_rwlock_unlock(&box->table);
	pthread_mutex_lock(&box->lock);
	pthread_cond_signal(&box->filled);
	pthread_mutex_unlock(&box->lock);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		struct box *box = malloc(sizeof(*box));

		*box = (struct box){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
				    PTHREAD_RWLOCK_INITIALIZER};
		join(start(use, box));
		pthread_rwlock_destroy(&box->table);
		pthread_cond_destroy(&box->filled);
		pthread_mutex_destroy(&box->lock);
		free(box);
	}
	return 0;
}
