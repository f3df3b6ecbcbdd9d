/* SPDX-License-Identifier: MIT */
/*
 * count_handler.c - a trace handler for tests. Each event is a record of a file in mapped memory, so that records survive any
 * end of the process. Each process image has its own file.
 *
 *     cc -shared -fPIC -o libcount.so count_handler.c
 *     PTHREAD_NPTL_TRACE=/path/libcount.so:DIRECTORY:LEVEL
 *
 * At the end it prints "domain.number count" for each type of event if its second argument is "print". Compiled with -DGETPLAIN
 * it takes events without fields in registers, and prints "plain" and their number at the end.
 */
#define _GNU_SOURCE
#define NPTL_TRACE_IMPLEMENTATION
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nptl_trace.h"
#include "nptl_trace_events.h"

#define RECORDS 65536

struct record {
	uint32_t tid;
	uint8_t source, domain, event, ready;
	uint64_t object;
	uint64_t site;
	uint32_t size;
	char fields[36];
};

/* It calls no traced function. */
const int nptl_trace_handler_reentrant = 1;

static struct record *records;
static uint32_t used;
static int print;

void nptl_trace_init(char **args)
{
	char path[4096];
	struct timespec now;
	int fd;

	print = args[0] && args[1] && !strcmp(args[1], "print");
	clock_gettime(CLOCK_MONOTONIC, &now);
	/* names sort by time, and each program that a process executes has its own name */
	snprintf(path, sizeof(path), "%s/%012lld.%09ld-%d", args[0] ? args[0] : ".", (long long)now.tv_sec, now.tv_nsec,
		 getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, RECORDS * sizeof(struct record)) < 0) {
		__nptl_trace_enabled = 0;
		return;
	}
	records = mmap(NULL, RECORDS * sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	used = 0;
	close(fd);
}

void nptl_trace_handler_getevent(struct nptl_trace_event event)
{
	const struct nptl_trace_param *param = event.param;
	uint32_t at = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	struct record *record = &records[at];
	size_t more;
	int before = errno;

	if (at >= RECORDS)
		return;
	record->tid = (uint32_t)syscall(SYS_gettid);
	errno = before;
	record->source = (uint8_t)event.source;
	record->domain = (uint8_t)event.domain;
	record->event = (uint8_t)event.event;
	record->size = (uint32_t)event.param_size;
	if (event.source == NPTL_TRACE_SOURCE_NPTL) {
		record->object = (uint64_t)(uintptr_t)param->object;
		record->site = (uint64_t)(uintptr_t)param->site;
		more = event.param_size - sizeof(*param);
		memcpy(record->fields, param + 1, more < sizeof(record->fields) ? more : sizeof(record->fields));
	}
	__atomic_store_n(&record->ready, 1, __ATOMIC_RELEASE);
}

#ifdef GETPLAIN
static uint32_t plain;

void nptl_trace_handler_getplain(void *object, void *site, unsigned int domain, unsigned int event)
{
	struct nptl_trace_param param = {.object = object, .site = site};

	__atomic_fetch_add(&plain, 1, __ATOMIC_RELAXED);
	nptl_trace_handler_getevent((struct nptl_trace_event){
		.domain = (char)domain, .event = (char)event, .param_size = sizeof(param), .param = &param});
}
#endif

void nptl_trace_fini(void)
{
	uint32_t counts[16][64] = {{0}}, i, d, e;

#ifdef GETPLAIN
	fprintf(stderr, "plain %u\n", plain);
#endif
	if (!print)
		return;
	for (i = 0; i < used && i < RECORDS; i++)
		if (records[i].source == NPTL_TRACE_SOURCE_NPTL)
			counts[records[i].domain & 15][records[i].event & 63]++;
	for (d = 0; d < 16; d++)
		for (e = 0; e < 64; e++)
			if (counts[d][e])
				fprintf(stderr, "%u.%u %u\n", d, e, counts[d][e]);
}
