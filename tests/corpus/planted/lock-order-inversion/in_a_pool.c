/* SPDX-License-Identifier: MIT */
/* in_a_pool.c - workers of a pool take jobs in any order; two kinds of jobs lock in opposite orders. */
/* expect: lock-order-inversion objects=users,groups sites=adds,lists */
#include "corpus.h"

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t users = PTHREAD_MUTEX_INITIALIZER, groups = PTHREAD_MUTEX_INITIALIZER;
static int next, done;

static void add(void)
{
	pthread_mutex_lock(&users);
	pthread_mutex_lock(&groups); /* SITE adds */
	pthread_mutex_unlock(&groups);
	pthread_mutex_unlock(&users);
}

static void list(void)
{
	pthread_mutex_lock(&groups);
	pthread_mutex_lock(&users); /* SITE lists */
	pthread_mutex_unlock(&users);
	pthread_mutex_unlock(&groups);
}

static void *worker(void *unused)
{
	int job = 0, mine;

	for (mine = 0; mine < 2; mine++) {
		pthread_mutex_lock(&queue);
		while (!next)
			pthread_cond_wait(&filled, &queue);
		job = next;
		next = 0;
		pthread_mutex_unlock(&queue);
		(job == 1 ? add : list)();
		arrive(&done);
		await(&done, 2 * mine + 2);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[2] = {start(worker, NULL), start(worker, NULL)};

	OBJECT(users);
	OBJECT(groups);
	for (int i = 0; i < 4; i++) {
		pthread_mutex_lock(&queue);
		next = i % 2 + 1;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&queue);
		await(&done, i + 1);
	}
	join(threads[0]);
	join(threads[1]);
	return 0;
}
