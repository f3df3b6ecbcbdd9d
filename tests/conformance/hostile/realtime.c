/* SPDX-License-Identifier: MIT */
/* realtime.c - a real-time thread continues although its collector, the parent process, is stopped. */
#include "work.h"

#include <sched.h>

static void *run(void *arg)
{
	struct sched_param param = {.sched_priority = 5};
	long i;

	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param)) {
		puts("not permitted");
		return arg;
	}
	kill(getppid(), SIGSTOP);
	for (i = 0; i < 200000; i++) {
		pthread_mutex_lock(&work_mutex);
		pthread_mutex_unlock(&work_mutex);
	}
	kill(getppid(), SIGCONT);
	puts("went on");
	return arg;
}

static void awake(int number)
{
	(void)number;
	kill(getppid(), SIGCONT);
	_exit(12);
}

int main(void)
{
	pthread_t thread;

	signal(SIGALRM, awake);
	alarm(120);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	return 0;
}
