/* SPDX-License-Identifier: MIT */
/* open.c - waits for a lock, a condition, a semaphore and a join; each lasts until a line comes, or for ever. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static sem_t never;

static void *want_gate(void *unused)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	return unused;
}

static void *want_work(void *unused)
{
	pthread_mutex_lock(&other);
	pthread_cond_wait(&work, &other);
	pthread_mutex_unlock(&other);
	return unused;
}

static void *want_unit(void *unused)
{
	sem_wait(&never);
	return unused;
}

static void *want_thread(void *thread)
{
	pthread_join(*(pthread_t *)thread, NULL);
	return thread;
}

int main(void)
{
	pthread_t threads[6];
	char end;

	sem_init(&never, 0, 0);
	pthread_mutex_lock(&gate);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, want_gate, NULL);
	pthread_create(&threads[2], NULL, want_work, NULL);
	pthread_create(&threads[3], NULL, want_unit, NULL);
	pthread_create(&threads[4], NULL, want_thread, &threads[3]);
	while (read(0, &end, 1) > 0)
		;
	usleep(20000);
	if (getenv("LET_GO")) {
		pthread_mutex_unlock(&gate);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
	}
	_exit(0);
}
