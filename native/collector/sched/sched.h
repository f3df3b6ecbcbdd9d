/* SPDX-License-Identifier: MIT */
/* sched.h - takes the kernel's records of context switches from its ring buffers into streams of the trace. */
/*
 * rings.c has a ring buffer for each processor. The kernel records there the context switches of the program and of all processes
 * that the program starts. switches.c finds the process image and the thread of each record, and writes the records as events
 * into a stream for each thread. One thread of the collector calls all these functions.
 */
#ifndef PTT_COLLECTOR_SCHED_H
#define PTT_COLLECTOR_SCHED_H

#include "../collector.h"

enum sched_kind {
	SCHED_IS_IN,
	SCHED_IS_OUT,
	SCHED_IS_PREEMPTED,
	SCHED_IS_EXIT, /* a thread ended */
	SCHED_IS_LOST, /* the ring buffer had no room; tid is the number of lost records */
};

struct sched_record {
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t order; /* order of records with the same time */
	uint32_t pid;
	uint32_t tid;
	uint16_t cpu;
	uint16_t kind; /* enum sched_kind */
};

struct sched_records {
	struct sched_record *item;
	size_t count;
	size_t room;
	uint64_t ever;
};

struct sched_ring {
	int fd;
	char *data; /* behind the page with the kernel's head and our tail */
	uint64_t last; /* time of the last record */
};

struct sched_rings {
	struct sched_ring *ring;
	uint32_t count;
	size_t size; /* bytes of data of each ring, a power of two */
};

/* sched_record_add - append a record. Return: false without memory. */
bool sched_record_add(struct sched_records *records, const struct sched_record *record);

/*
 * rings_open - have the kernel record the context switches of @pid, from its next exec on
 * Return: 0 or -errno; -EACCES and -EPERM: the kernel does not allow it.
 */
int rings_open(struct sched_rings *rings, pid_t pid) PTT_MUST_CHECK;

/* rings_read - move all records from the rings to @records. Return: number of records that were lost for lack of memory. */
uint64_t rings_read(struct sched_rings *rings, struct sched_records *records);
void rings_close(struct sched_rings *rings);

#endif
