/* SPDX-License-Identifier: MIT */
/* tracer.c - two threads and a mutex, traced into a POSIX log together with the program's own events. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <trace.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_bool about_to_lock;

/* Until the first thread sleeps, because it waits for the mutex. */
static void wait_for_waiter(void)
{
	char state = 0, path[64];

	/* state of the thread: an emulator's substitute for /proc/self/stat has none */
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (!about_to_lock)
		usleep(1000);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		if (!file || fscanf(file, "%*d (tracer) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		usleep(1000);
	}
}

static void *hold(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	wait_for_waiter();
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
	trace_event_id_t mine;
	pthread_t thread;
	trace_id_t trid;

	pthread_barrier_init(&barrier, NULL, 2);
	if (posix_trace_eventid_open("mine", &mine) || (fd >= 0 && posix_trace_create_withlog(0, NULL, fd, &trid)) ||
	    (fd >= 0 && posix_trace_start(trid)))
		return 1;
	posix_trace_event(mine, "begin", 5);
	pthread_create(&thread, NULL, hold, NULL);
	pthread_barrier_wait(&barrier);
	about_to_lock = true;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	posix_trace_event(mine, "end", 3);
	return fd >= 0 ? posix_trace_shutdown(trid) : 0;
}
