/* many.c - processes with threads that wait for work: many PROCESSES THREADS TICK_MS. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int tick_ms;

static void *worker(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&work, &mutex);
	return unused;
}

/* Gives work to a worker again and again; without a time between, gives none. */
static void *giver(void *unused)
{
	for (;;) {
		poll(NULL, 0, tick_ms ? tick_ms : -1);
		pthread_mutex_lock(&mutex);
		pthread_cond_signal(&work);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int count, char **words)
{
	pthread_t thread;

	if (count != 4)
		return 2;
	tick_ms = atoi(words[3]);
	for (int process = atoi(words[1]); process > 0; process--) {
		if (fork())
			continue;
		for (int threads = atoi(words[2]); threads > 2; threads--)
			pthread_create(&thread, NULL, worker, NULL);
		pthread_create(&thread, NULL, giver, NULL);
		poll(NULL, 0, -1);
	}
	puts("ready");
	fflush(stdout);
	poll(NULL, 0, -1);
}
