/* SPDX-License-Identifier: MIT */
/* drain_shared.h - what the parts that read the one shared buffer have in common. */
#ifndef PTT_SHARED_DRAIN_H
#define PTT_SHARED_DRAIN_H

#include "../collector.h"

#define FAULTS_KEPT 64u

/* A thread that has events in the trace. */
struct shared_thread {
	uint64_t key; /* pid << 32 | tid; 0 = free */
	uint32_t process;
	uint32_t pad;
};

struct shared_drain {
	struct ptt_shared *shared;
	struct ptt_shared head; /* what of it does not change, as it was when it was mapped */
	uint32_t *array; /* mapped twice, end to end */
	struct ptt_guard *guard; /* of that */
	uint64_t given_up_words;
	struct shared_thread *thread; /* a hash table */
	uint64_t thread_room; /* a power of two, or 0 */
	uint64_t thread_count;
	uint64_t last_thread;
	uint64_t faults; /* all of them; the first FAULTS_KEPT in detail */
	struct ptt_collector_fault fault[FAULTS_KEPT];
};

/* shared_writers.c */
bool shared_any_writer_lives(struct ptt_collector *c);
/* shared_any_writer_runs - has a writing process a thread that runs, or would run if it had a processor? Reads /proc. */
bool shared_any_writer_runs(struct ptt_collector *c);
void shared_note_thread(struct ptt_collector *c, uint32_t pid, uint32_t tid);
void shared_note_fault(struct ptt_collector *c, const struct ptt_collector_fault *fault);

#endif
