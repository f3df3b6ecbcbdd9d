/* SPDX-License-Identifier: MIT */
/* sem.c - every semaphore routine, with and without a wait, its errors, and named semaphores. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "show.h"

static sem_t sem;

static void *in_turn(void *arg)
{
	struct timespec later = in_ms(CLOCK_REALTIME, 600000), later_monotonic = in_ms(CLOCK_MONOTONIC, 600000);

	arrive();
	switch ((long)arg) {
	case 0:
		SHOW(sem_wait(&sem));
		break;
	case 1:
		SHOW(sem_timedwait(&sem, &later));
		break;
	case 2:
		SHOW(sem_clockwait(&sem, CLOCK_MONOTONIC, &later_monotonic));
		break;
	case 3: /* a signal handler without SA_RESTART comes */
		SHOW(sem_wait(&sem));
		break;
	}
	return NULL;
}

/* A signal handler may call sem_post. */
static void post(int number)
{
	(void)number;
	sem_post(&sem);
}

static void nothing(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = nothing};
	char name[64];
	pthread_t thread;
	sem_t *named;
	long i;

	snprintf(name, sizeof(name), "%s-%d", argc > 1 ? argv[1] : "/ptt-test", getpid());
	SHOW(sem_init(&sem, 0, (unsigned int)SEM_VALUE_MAX + 1));
	SHOW(sem_init(&sem, 0, 2));
	SHOW(sem_wait(&sem));
	SHOW(sem_trywait(&sem));
	SHOW(sem_trywait(&sem));
	SHOW(sem_timedwait(&sem, &not_a_time));
	SHOW(sem_timedwait(&sem, &long_ago));
	SHOW(sem_clockwait(&sem, CLOCK_THREAD_CPUTIME_ID, &long_ago));
	SHOW(sem_clockwait(&sem, CLOCK_MONOTONIC, &long_ago));
	SHOW(sem_post(&sem));
	SHOW(sem_timedwait(&sem, &long_ago));
	SHOW(sem_post(&sem));
	SHOW(sem_timedwait(&sem, &not_a_time));
	SHOW(sem_clockwait(&sem, CLOCK_REALTIME, &not_a_time));
	SHOW(sem_wait(&sem));
	for (i = 0; i < 3; i++) {
		pthread_create(&thread, NULL, in_turn, (void *)i);
		let_block();
		sem_post(&sem);
		pthread_join(thread, NULL);
	}
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = post;
	sigaction(SIGUSR2, &action, NULL);
	pthread_create(&thread, NULL, in_turn, (void *)3);
	let_block();
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	raise(SIGUSR2);
	SHOW(sem_wait(&sem));
	SHOW(sem_destroy(&sem));

	SHOW(sem_init(&sem, 0, SEM_VALUE_MAX));
	SHOW(sem_post(&sem));
	SHOW(sem_open("/ptt-no-such-semaphore", 0) == SEM_FAILED);
	named = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
	SHOW(named == SEM_FAILED);
	SHOW(sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED);
	SHOW(sem_wait(named));
	SHOW(sem_post(named));
	SHOW(sem_close(named));
	SHOW(sem_unlink(name));
	SHOW(sem_unlink(name));
	return 0;
}
