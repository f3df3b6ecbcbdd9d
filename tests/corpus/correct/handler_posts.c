/* SPDX-License-Identifier: MIT */
/* handler_posts.c - all threads wait; a signal handler would post the semaphore of one thread, but the signal has not come yet. */
/* run: hangs 2 */
#include "corpus.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static sem_t reload;
static int wanted;

static void on_hangup(int number)
{
	(void)number;
	sem_post(&reload);
}

static void *worker(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!wanted) {
		for_ever();
		pthread_cond_wait(&asked, &lock);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	sem_init(&reload, 0, 0);
	signal(SIGHUP, on_hangup);
	thread = start(worker, NULL);
	for_ever();
	while (sem_wait(&reload))
		;
	pthread_mutex_lock(&lock);
	wanted = 1;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&lock);
	join(thread);
	return 0;
}
