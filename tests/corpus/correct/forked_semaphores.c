/* SPDX-License-Identifier: MIT */
/* forked_semaphores.c - children are killed while they wait for semaphores that the parent or its other threads held at the fork. */
#include "corpus.h"

static sem_t gate, again, own;
static int held, leave, waiting;

static void *holder(void *unused)
{
	sem_wait(&gate);
	sem_wait(&again);
	arrive(&held);
	await(&leave, 1);
	sem_post(&again);
	sem_post(&gate);
	return unused;
}

/* A thread of the child that would open the gate later. */
static void *opens(void *unused)
{
	await(&leave, 1);
	sem_post(&gate);
	return unused;
}

static void at_gate(void)
{
	start(opens, NULL);
	sem_wait(&gate);
}

static void at_new_one(void)
{
	sem_init(&again, 0, 1);
	sem_wait(&again);
	sem_post(&again);
	_exit(0);
}

static void *waits(void *unused)
{
	set_tid(&waiting);
	sem_wait(&own);
	sem_post(&own);
	return unused;
}

static void gives_back(void)
{
	pthread_t thread = start(waits, NULL);

	await_asleep(&waiting);
	sem_post(&own);
	join(thread);
	_exit(0);
}

static pid_t child(void (*routine)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		routine();
		_exit(1);
	}
	return pid;
}

int main(void)
{
	pthread_t thread;
	int status;
	pid_t pid;

	sem_init(&gate, 0, 1);
	sem_init(&again, 0, 1);
	sem_init(&own, 0, 1);
	thread = start(holder, NULL);
	await(&held, 1);
	pid = child(at_gate);
	nap_ms(100);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || waitpid(child(at_new_one), &status, 0) < 0 || status)
		abort();
	sem_wait(&own);
	if (waitpid(child(gives_back), &status, 0) < 0 || status)
		abort();
	sem_post(&own);
	arrive(&leave);
	join(thread);
	return 0;
}
