/* SPDX-License-Identifier: MIT */
/* signals.c - a signal handler posts a semaphore, and a thread waits for signals. */
#include "corpus.h"

static sem_t seen;

static void handler(int unused)
{
	(void)unused;
	sem_post(&seen);
}

static void *sigwaiter(void *set)
{
	int got;

	sigwait(set, &got);
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler};
	sigset_t set;
	pthread_t thread;

	sem_init(&seen, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	thread = start(sigwaiter, &set);
	for (int i = 0; i < 5; i++) {
		raise(SIGUSR1);
		while (sem_wait(&seen) && errno == EINTR)
			;
	}
	pthread_kill(thread, SIGUSR2);
	join(thread);
	sem_destroy(&seen);
	return 0;
}
