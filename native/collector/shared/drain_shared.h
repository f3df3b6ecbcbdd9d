/* SPDX-License-Identifier: MIT */
/* drain_shared.h - the state and functions of the two files that read the shared buffer. */
#ifndef PTT_SHARED_DRAIN_H
#define PTT_SHARED_DRAIN_H

#include "../collector.h"

#define FAULTS_KEPT 64u

/* A thread with events in the trace. */
struct shared_thread {
	uint64_t key; /* pid << 32 | tid; 0 = free */
	uint32_t process;
	uint32_t pad;
};

struct shared_drain {
	struct ptt_shared *shared;
	struct ptt_shared head; /* a copy from the beginning, for the members that do not change */
	uint32_t *array; /* mapped twice, end to end */
	struct ptt_guard *guard; /* guard of the array */
	uint64_t given_up_words;
	struct shared_thread *thread; /* a hash table */
	uint64_t thread_room; /* a power of two, or 0 */
	uint64_t thread_count;
	uint64_t last_thread;
	uint64_t faults; /* number of all faults; fault[] has the first FAULTS_KEPT */
	struct ptt_collector_fault fault[FAULTS_KEPT];
};

/* shared_writers.c */
bool shared_any_writer_lives(struct ptt_collector *c);
/* shared_any_writer_runs - does a process that writes have a running or runnable thread? Reads /proc. */
bool shared_any_writer_runs(struct ptt_collector *c);
void shared_note_thread(struct ptt_collector *c, uint32_t pid, uint32_t tid);
void shared_note_fault(struct ptt_collector *c, const struct ptt_collector_fault *fault);

#endif
