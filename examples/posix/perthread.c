/* SPDX-License-Identifier: MIT */
/*
 * perthread.c - events of some threads only: each thread has a switch of its own in front of the trace point.
 *
 *     cc -pthread -o perthread perthread.c $(pkg-config --cflags --libs posixtrace)
 *     ./perthread
 *
 * A filter is for all threads of a process. To trace only some threads, the program itself must decide.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <trace.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t traced; /* not NULL: this thread's work is traced */
static trace_event_id_t work;

static void prepare(void)
{
	pthread_key_create(&traced, NULL);
	posix_trace_eventid_open("work", &work);
}

/* All threads call this function. */
static void do_work(int n)
{
	pthread_once(&once, prepare);
	if (pthread_getspecific(traced))
		posix_trace_event(work, &n, sizeof(n));
}

static void *run(void *number)
{
	int i, me = *(int *)number;

	pthread_once(&once, prepare);
	if (me % 2) /* every other thread */
		pthread_setspecific(traced, &traced);
	for (i = 0; i < 5; i++)
		do_work(me);
	return NULL;
}

int main(void)
{
	struct posix_trace_event_info event;
	int numbers[4] = {0, 1, 2, 3}, counts[4] = {0}, n, none_left, i;
	pthread_t threads[4];
	trace_id_t stream;
	size_t length;

	if (posix_trace_create(0, NULL, &stream) || posix_trace_start(stream))
		return EXIT_FAILURE;
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, &numbers[i]);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	while (posix_trace_trygetnext_event(stream, &event, &n, sizeof(n), &length, &none_left) == 0 && !none_left)
		if (posix_trace_eventid_equal(stream, event.posix_event_id, work))
			counts[n]++;
	posix_trace_shutdown(stream);
	for (i = 0; i < 4; i++)
		printf("thread %d: %d events\n", i, counts[i]);
	return EXIT_SUCCESS;
}
