/* SPDX-License-Identifier: MIT */
/* sched.h - the kernel's records of context switches, from its ring buffers into streams of the trace. */
/*
 * rings.c has one ring buffer of the kernel's a processor, to which it writes the context switches of the program and of all
 * that the program starts. switches.c gives each record to the process image and thread that it is about, and writes them as
 * events in streams of their own, one a thread. All of it is called by the collector's one thread.
 */
#ifndef PTT_COLLECTOR_SCHED_H
#define PTT_COLLECTOR_SCHED_H

#include "../collector.h"

enum sched_kind {
	SCHED_IS_IN,
	SCHED_IS_OUT,
	SCHED_IS_PREEMPTED,
	SCHED_IS_EXIT, /* of a thread */
	SCHED_IS_LOST, /* what the ring buffer had no room for; tid is how many records */
};

struct sched_record {
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t order; /* of records of the same time */
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
	char *data; /* behind the page that says how far the kernel has written */
	uint64_t last; /* time of the last record */
};

struct sched_rings {
	struct sched_ring *ring;
	uint32_t count;
	size_t size; /* of the data of one, a power of two */
};

/* sched_record_add - @records has one more; false: there is no memory for it. */
bool sched_record_add(struct sched_records *records, const struct sched_record *record);

/*
 * rings_open - have the kernel write down the context switches of @pid, from when it executes a program
 * Return: 0 or -errno; -EACCES and -EPERM: the kernel does not allow it.
 */
int rings_open(struct sched_rings *rings, pid_t pid) PTT_MUST_CHECK;
/* rings_read - moves what there is to @records. Return: how many records had no memory. */
uint64_t rings_read(struct sched_rings *rings, struct sched_records *records);
void rings_close(struct sched_rings *rings);

#endif
