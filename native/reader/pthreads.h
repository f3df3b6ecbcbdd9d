/* SPDX-License-Identifier: MIT */
/* pthreads.h - the thread that a pthread_t stood for at a time. */
#ifndef PTT_READER_PTHREADS_H
#define PTT_READER_PTHREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "hash_map.h"

/* From a time on, a pthread_t stands for a thread. */
struct rd_tenure {
	uint64_t pthread;
	int64_t since;
	uint32_t process;
	uint32_t thread; /* number in the reader */
};

struct rd_pthreads {
	struct rd_tenure *tenures;
	uint32_t count;
	uint32_t room;
	bool sorted;
	/* From printed events, by (process, pthread_t): thread number + 1, and since when. */
	struct rd_map begun;
	struct rd_map begun_ts;
};

void rd_pthreads_free(struct rd_pthreads *pthreads);
/* rd_pthreads_add - declares a tenure before the events. Return: 0 or -ENOMEM. */
int rd_pthreads_add(struct rd_pthreads *pthreads, const struct rd_tenure *tenure);
/* rd_pthreads_begin - an event begins a tenure; without memory it is ignored. */
void rd_pthreads_begin(struct rd_pthreads *pthreads, const struct rd_tenure *seen);
/* rd_pthread_at - the thread that a pthread_t stood for at a time. Return: its number + 1; 0 if unknown. */
uint32_t rd_pthread_at(struct rd_pthreads *pthreads, uint32_t process, uint64_t pthread, int64_t ts);

#endif
