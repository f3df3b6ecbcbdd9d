/* SPDX-License-Identifier: MIT */
/* processor.h - how long a thread has had no processor, as the scheduler's readings among its events say. */
/*
 * A thread that has readings has one before each event that it did not run up to. So between two events without a reading
 * in between it has run, and of what lies between an event and the reading behind it the sums are known. Some readings say
 * no more than how long the thread has run: then it is left to the next whole one what it did without a processor, and of the times
 * in between only that one sum is known; unless the thread ran all the time up to that one, which then holds for both.
 */
#ifndef PTT_TRACKER_PROCESSOR_H
#define PTT_TRACKER_PROCESSOR_H

#include "state.h"

/* Sums since some time. They may be subtracted where the epochs are the same, and not 0. */
struct tk_sched_mark {
	int64_t off_ns;	   /* without a processor */
	int64_t ready_ns;  /* of that, it could have run, up to the last whole reading */
	int64_t vague_ns;  /* of off_ns, what lies behind that */
	uint32_t slices;   /* how often it has been given a processor, up to then */
	uint32_t epoch;	   /* 0 = nothing is known; changes where something happened that is not known */
	uint32_t divided;  /* the same of ready_ns */
};

struct tk_sched {
	struct tk_sched_mark now;
	int64_t read;  /* when the last reading was */
	int64_t ran;   /* as it said */
	int64_t ready; /* as the last whole one said */
	uint32_t epochs; /* ever */
	bool has_read; /* the last reading had numbers */
};

/* What went by between a mark and now; -1 where that is not known. */
struct tk_sched_sums {
	int64_t off_ns;
	int64_t ready_ns;
	int64_t ready_least_ns; /* known where off_ns is, as is the next: what ready_ns is in any case, and at most */
	int64_t ready_most_ns;
};

/* What a reading says of the time since the one before, also in waits: it was ready, or slept, so long at least. */
struct tk_sched_gap {
	int64_t ready_ns;
	int64_t slept_ns;
	bool switched; /* the thread has lost the processor, or may have */
};

struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e);

/* tk_sched_lose - there may have been readings that nobody saw, or there will be none any more. */
void tk_sched_lose(struct tk_sched *s);

/* tk_sched_lost - what tk_sched_since() returns where the thread has been without a processor since the mark, and that is known. */
struct tk_sched_sums tk_sched_lost(const struct tk_sched *s, const struct tk_sched_mark *mark);

/* tk_sched_since - inline, as every hold asks for it and next to none has been without a processor. */
static inline struct tk_sched_sums tk_sched_since(const struct tk_sched *s, const struct tk_sched_mark *mark)
{
	if (!mark->epoch || mark->epoch != s->now.epoch)
		return (struct tk_sched_sums){ -1, -1, -1, -1 };
	if (s->now.off_ns <= mark->off_ns)
		return (struct tk_sched_sums){ 0, 0, 0, 0 };
	return tk_sched_lost(s, mark);
}

/* tk_sched_limit - none of them was longer than @ns. */
void tk_sched_limit(struct tk_sched_sums *sums, int64_t ns);

#endif
