/* SPDX-License-Identifier: MIT */
/* thread_names.h - names of threads from a time on: the kernel gives ids of ended threads to others. */
#ifndef PTTREAD_THREAD_NAMES_H
#define PTTREAD_THREAD_NAMES_H

#include <stdint.h>

/* A thread among the threads that had one id, one after the other. */
struct rd_turn {
	int64_t since;
	char *name;  /* NULL = unknown */
	char *label; /* what stands in front of a line, padded; NULL until it is used first */
};

struct rd_turns {
	struct rd_turn *turns; /* in their order, the first one from INT64_MIN on */
	uint32_t count;
	uint32_t room;
	int64_t begun; /* when the only one began, by an event that was printed; INT64_MIN = not known */
};

/* By the thread's number in the reader. */
struct rd_thread_names {
	struct rd_turns *threads;
	uint32_t room;
};

void rd_thread_names_free(struct rd_thread_names *names);
/* rd_turn_at - the thread that has an id at a time; NULL when memory is out. */
struct rd_turn *rd_turn_at(struct rd_thread_names *names, uint32_t thread, int64_t ts);
/* rd_turn_set - a thread of this name has the id from a time on, @text is taken over. Return: 0 or -ENOMEM. */
int rd_turn_set(struct rd_thread_names *names, uint32_t thread, int64_t since, char *text);
/* rd_turn_begin - an event says that a thread begins; without memory the event is forgotten. */
void rd_turn_begin(struct rd_thread_names *names, uint32_t thread, int64_t ts);

#endif
