/* SPDX-License-Identifier: MIT */
/* many.c - processes with threads that wait for work: many PROCESSES THREADS TICK_MS. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int tick_ms;

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static void start(void *(*function)(void *))
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, function, NULL);
	if (errno)
		fail("pthread_create");
}

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
	if (count != 4)
		return 2;
	tick_ms = atoi(words[3]);
	for (int process = atoi(words[1]); process > 0; process--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child)
			continue;
		for (int threads = atoi(words[2]); threads > 2; threads--)
			start(worker);
		start(giver);
		poll(NULL, 0, -1);
	}
	puts("ready");
	fflush(stdout);
	poll(NULL, 0, -1);
}
