/* SPDX-License-Identifier: MIT */
/* event.c - nanoseconds of a trace point with 16 bytes of data: event bare|ticks|floor|none|filtered|loop COUNT. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trace.h>

#define RECORDS 16384u /* 1 MiB */

struct record {
	uint64_t time;
	uint64_t data[2];
	uint64_t rest[5];
};

static struct record records[RECORDS];
static uint64_t next;

static inline uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Mode `bare` measures the loop and the call; benchmarks/posix.py subtracts them from other figures. */
__attribute__((noinline)) static void bare(trace_event_id_t id, const void *data, size_t length)
{
	__asm__ volatile("" ::"r"(id), "r"(data), "r"(length) : "memory");
}

static inline void store(uint64_t time, trace_event_id_t id, const void *data, size_t length)
{
	struct record *r = &records[next++ % RECORDS];

	r->time = time;
	r->rest[0] = id;
	memcpy(r->data, data, length < sizeof(r->data) ? length : sizeof(r->data));
}

/* The least work of a tracer: with the processor's time stamp, and with the time of the kernel. */
__attribute__((noinline)) static void floor_in_ticks(trace_event_id_t id, const void *data, size_t length)
{
#if defined(__x86_64__)
	store(__builtin_ia32_rdtsc(), id, data, length);
#else
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	store(ticks, id, data, length);
#endif
}

__attribute__((noinline)) static void floor_in_ns(trace_event_id_t id, const void *data, size_t length)
{
	store(now(CLOCK_MONOTONIC), id, data, length);
}

static void prepare(const char *mode, trace_event_id_t id)
{
	trace_event_set_t set;
	trace_attr_t attr;
	trace_id_t stream;

	if (strcmp(mode, "filtered") && strcmp(mode, "loop"))
		return;
	posix_trace_attr_init(&attr);
	posix_trace_attr_setstreamsize(&attr, sizeof(records));
	posix_trace_attr_setstreamfullpolicy(&attr, POSIX_TRACE_LOOP);
	posix_trace_eventset_empty(&set);
	posix_trace_eventset_add(id, &set);
	if (posix_trace_create(0, &attr, &stream) || posix_trace_start(stream))
		exit(EXIT_FAILURE);
	if (strcmp(mode, "filtered") == 0 && posix_trace_set_filter(stream, &set, POSIX_TRACE_SET_EVENTSET))
		exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	void (*volatile chosen)(trace_event_id_t, const void *, size_t) = posix_trace_event;
	void (*point)(trace_event_id_t, const void *, size_t);
	uint64_t count, i, begin, data[2] = {0};
	trace_event_id_t id;

	if (argc != 3 || posix_trace_eventid_open("event", &id))
		return EXIT_FAILURE;
	count = strtoull(argv[2], NULL, 10);
	if (strcmp(argv[1], "bare") == 0)
		chosen = bare;
	if (strcmp(argv[1], "ticks") == 0)
		chosen = floor_in_ticks;
	if (strcmp(argv[1], "floor") == 0)
		chosen = floor_in_ns;
	prepare(argv[1], id);
	point = chosen;
	for (i = 0; i < count / 10; i++) /* warm */
		point(id, data, sizeof(data));
	begin = now(CLOCK_PROCESS_CPUTIME_ID); /* nothing here sleeps, and others may use the processor */
	for (i = 0; i < count; i++) {
		data[0] = i;
		point(id, data, sizeof(data));
	}
	printf("%.4f\n", (double)(now(CLOCK_PROCESS_CPUTIME_ID) - begin) / (double)count);
	return EXIT_SUCCESS;
}
