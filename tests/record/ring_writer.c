/* SPDX-License-Identifier: MIT */
/* ring_writer.c - a program that only writes: known events from many threads, with no tracer in between. */
/*
 * ring_writer DIRECTORY THREADS EVENTS [BATCHES [SIGNALS]]
 *
 * Each thread of each batch records EVENTS events: alternately MUTEX_TAKEN, MUTEX_FREE, and, as every 16th, MUTEX_WAIT,
 * which takes two slots. The object is 0x1000 * (1 + number of the thread), and each thread has its own site. With SIGNALS,
 * a timer interrupts the process and its handler records as well; the program prints how many.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "writer/writer.h"
#include "origin/site.h"

#define MUTEX_WAIT (2u << 6 | 2)
#define MUTEX_TAKEN (2u << 6 | 3)
#define MUTEX_FREE (2u << 6 | 5)

static unsigned long events;
static unsigned long in_handler;

static void record(uint64_t number, unsigned long i, uint64_t site)
{
	uint64_t w1 = (0x1000 * (number + 1)) | (uint64_t)ptt_ring_site(site) << PTT_SITE_SHIFT;
	struct ptt_slot rest = {.w0 = PTT_ID_MORE | UINT64_C(7) << 32, .w1 = i};

	if (i % 16 == 15)
		ptt_ring_put_slow(MUTEX_WAIT, w1, &rest, 1, false);
	else
		ptt_ring_put1(ptt_ring_self, i % 2 ? MUTEX_FREE : MUTEX_TAKEN, w1, false);
}

static void handler(int number)
{
	(void)number;
	for (unsigned long i = 0; i < 20; i++)
		record(0xfff, i, 0x400999);
	__atomic_fetch_add(&in_handler, 20, __ATOMIC_RELAXED);
}

static void *work(void *argument)
{
	uint64_t number = (uintptr_t)argument;

	for (unsigned long i = 0; i < events; i++)
		record(number, i, 0x400000 + 16 * (i % 8));
	ptt_ring_thread_end();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long threads, batches, i, batch;
	struct itimerval every = {.it_interval.tv_usec = 200, .it_value.tv_usec = 200}, never = {0};
	pthread_t *id;

	if (argc < 4 || ptt_ring_attach(argv[1]))
		return 2;
	threads = strtoul(argv[2], NULL, 10);
	events = strtoul(argv[3], NULL, 10);
	batches = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
	id = calloc(threads, sizeof(*id));
	if (!id)
		return 2;
	if (argc > 5) {
		signal(SIGALRM, handler);
		setitimer(ITIMER_REAL, &every, NULL);
	}
	for (batch = 0; batch < batches; batch++) {
		for (i = 0; i < threads; i++)
			if (pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i))
				return 2;
		for (i = 0; i < threads; i++)
			pthread_join(id[i], NULL);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	ptt_ring_thread_end();
	ptt_ring_detach();
	printf("%lu\n", threads * events * batches + in_handler);
	free(id);
	return 0;
}
