/* SPDX-License-Identifier: MIT */
/* timers.c - timers and asynchronous input use threads that the C library creates. */
#include "corpus.h"
#include <aio.h>

static sem_t fired;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void on_time(union sigval unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	count++;
	pthread_mutex_unlock(&lock);
	sem_post(&fired);
}

int main(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_time};
	struct itimerspec often = {{0, 2000000}, {0, 2000000}};
	static char block[64];
	struct aiocb request = {.aio_buf = block, .aio_nbytes = sizeof(block)};
	const struct aiocb *requests[] = {&request};
	timer_t timer;

	sem_init(&fired, 0, 0);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return 1;
	timer_settime(timer, 0, &often, NULL);
	for (int i = 0; i < 3; i++)
		sem_wait(&fired);
	timer_delete(timer);
	request.aio_fildes = open("/proc/self/stat", O_RDONLY);
	if (aio_read(&request) == 0)
		aio_suspend(requests, 1, NULL);
	return 0;
}
