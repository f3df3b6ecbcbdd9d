/* SPDX-License-Identifier: MIT */
/* sleeping_holder.c - sleeps with a lock that another thread waits for, and then without the lock; `hangs`: in read(), for
   ever; `jumps`: out of poll() by a signal handler. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t met;
static sigjmp_buf back;

static __attribute__((noinline)) void nap(long ms)
{
	struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

static void *asks(void *unused)
{
	pthread_barrier_wait(&met);
	pthread_mutex_lock(&hot);
	pthread_mutex_unlock(&hot);
	return unused;
}

static void jump(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static void jumps(void)
{
	signal(SIGALRM, jump);
	pthread_mutex_lock(&hot);
	if (sigsetjmp(back, 1) == 0) {
		ualarm(20000, 0);
		poll(NULL, 0, -1);
	}
	pthread_mutex_unlock(&hot);
	for (volatile long i = 0; i < 20000000; i++)
		;
	pthread_mutex_lock(&hot);
	pthread_mutex_unlock(&hot);
}

int main(int argc, char **argv)
{
	pthread_t other;
	char byte;
	int ends[2];

	if (argc > 1 && strcmp(argv[1], "jumps") == 0) {
		jumps();
		return 0;
	}
	pthread_barrier_init(&met, NULL, 2);
	pthread_create(&other, NULL, asks, NULL);
	pthread_mutex_lock(&hot);
	pthread_barrier_wait(&met);
	if (argc > 1 && pipe(ends) == 0) {
		alarm(1);
		return (int)read(ends[0], &byte, 1);
	}
	nap(60);
	pthread_mutex_unlock(&hot);
	nap(30);
	pthread_join(other, NULL);
	return 0;
}
