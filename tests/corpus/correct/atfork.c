/* SPDX-License-Identifier: MIT */
/* atfork.c - handlers of pthread_atfork lock around a fork, and unlock on both sides. */
#include "corpus.h"

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER, table = PTHREAD_MUTEX_INITIALIZER;
static int over;

static void prepare(void)
{
	pthread_mutex_lock(&table);
	pthread_mutex_lock(&heap);
}

static void after(void)
{
	pthread_mutex_unlock(&heap);
	pthread_mutex_unlock(&table);
}

static void *worker(void *unused)
{
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&table);
		pthread_mutex_lock(&heap);
		pthread_mutex_unlock(&heap);
		pthread_mutex_unlock(&table);
		nap_ms(1);
	}
	return unused;
}

static void *in_child(void *unused)
{
	prepare();
	after();
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_atfork(prepare, after, after);
	thread = start(worker, NULL);
	for (int i = 0; i < 3; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			join(start(in_child, NULL));
			_exit(0);
		}
		waitpid(child, &status, 0);
		if (status)
			return 1;
	}
	arrive(&over);
	join(thread);
	return 0;
}
