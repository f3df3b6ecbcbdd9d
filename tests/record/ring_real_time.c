/* SPDX-License-Identifier: MIT */
/* ring_real_time.c - an ordinary thread fills the buffers and waits for room; then a real-time thread records, too. */
/*
 * ring_real_time DIRECTORY EVENTS
 *
 * Prints `recorded` once the real-time thread has recorded EVENTS events; ends once there is room for the ordinary thread.
 * Exit status 77: real-time policies are not permitted.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "writer/writer.h"
#include "writer/session.h"

#define MUTEX_TAKEN (2u << 6 | 3)

static unsigned long events;

static void record(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		ptt_ring_put1(ptt_ring_self, MUTEX_TAKEN, 0x1000, false);
}

/* One more than there is room for. */
static void *fill(void *unused)
{
	const struct ptt_segment *seg = ptt_session.segment;
	unsigned long in_one = (seg->chunk_size - PTT_CHUNK_HEAD) / PTT_SLOT_SIZE;

	record((seg->chunk_count - seg->chunk_reserve) * in_one + 1);
	ptt_ring_thread_end();
	return unused;
}

static void *in_real_time(void *unused)
{
	record(events);
	ptt_ring_thread_end();
	return unused;
}

int main(int argc, char **argv)
{
	struct sched_param param = {.sched_priority = 1};
	pthread_t ordinary, real_time;
	pthread_attr_t attr;

	if (argc < 3 || ptt_ring_attach(argv[1]))
		return 2;
	events = strtoul(argv[2], NULL, 10);
	pthread_create(&ordinary, NULL, fill, NULL);
	while (!__atomic_load_n(&ptt_session.segment->waiters, __ATOMIC_ACQUIRE))
		usleep(1000);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&real_time, &attr, in_real_time, NULL))
		return 77;
	pthread_join(real_time, NULL);
	puts("recorded");
	fflush(stdout);
	pthread_join(ordinary, NULL);
	ptt_ring_detach();
	return 0;
}
