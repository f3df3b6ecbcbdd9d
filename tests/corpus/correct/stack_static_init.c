/* SPDX-License-Identifier: MIT */
/* stack_static_init.c - a function assigns initialisers to its own locks and destroys them; it is called again and again. */
#include "corpus.h"

struct call {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	pthread_rwlock_t table;
	int done;
};

static void *serve(void *argument)
{
	struct call *call = argument;

	pthread_rwlock_wrlock(&call->table);
	pthread_rwlock_unlock(&call->table);
	pthread_mutex_lock(&call->lock);
	call->done = 1;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&call->lock);
	return NULL;
}

static __attribute__((noinline)) void call(void)
{
	struct call call = {.lock = PTHREAD_MUTEX_INITIALIZER,
			    .ended = PTHREAD_COND_INITIALIZER,
			    .table = PTHREAD_RWLOCK_INITIALIZER};
	pthread_t server = start(serve, &call);

	pthread_mutex_lock(&call.lock);
	while (!call.done)
		pthread_cond_wait(&call.ended, &call.lock);
	pthread_mutex_unlock(&call.lock);
	join(server);
	pthread_rwlock_destroy(&call.table);
	pthread_cond_destroy(&call.ended);
	pthread_mutex_destroy(&call.lock);
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		call();
	return 0;
}
