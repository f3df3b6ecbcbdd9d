/* SPDX-License-Identifier: MIT */
/* processor.h - the time of a thread without a processor, by the readings of the scheduler among its events. */
/*
 * A reading precedes each event of a thread that lost its processor since the event before. So the thread ran between two events
 * without a reading in between. Between an event and the next reading, the sums are known. Some readings contain only the time
 * that the thread ran. The next whole reading then divides the time without a processor. For the times in between, only the
 * sum is known. If the thread ran all the time up to the whole reading, the whole reading holds for both.
 */
#ifndef PTT_TRACKER_PROCESSOR_H
#define PTT_TRACKER_PROCESSOR_H

#include "state.h"

/* Sums since some time. Two marks may be subtracted if their epochs are equal and not 0. */
struct tk_sched_mark {
	int64_t off_ns;	   /* without a processor */
	int64_t ready_ns;  /* ns of off_ns that the thread could have run, up to the last whole reading */
	int64_t vague_ns;  /* the part of off_ns after the last whole reading */
	uint32_t slices;   /* how often the thread got a processor, up to the last whole reading */
	uint32_t epoch;	   /* of off_ns; 0 = unknown. Changes when readings may be missing */
	uint32_t divided;  /* epoch of ready_ns */
};

struct tk_sched {
	struct tk_sched_mark now;
	int64_t read;  /* time of the last reading */
	int64_t ran;   /* total of the last reading */
	int64_t ready; /* total of the last whole reading */
	uint32_t epochs; /* number of epochs so far */
	bool has_read; /* the last reading had numbers */
};

/* Differences between a mark and now, in ns; -1 = unknown. */
struct tk_sched_sums {
	int64_t off_ns;
	int64_t ready_ns;
	int64_t ready_least_ns; /* bounds of ready_ns; known if off_ns is known */
	int64_t ready_most_ns;
};

/* Minimum of two times since the previous reading: the thread was ready, and the thread slept, also in waits. */
struct tk_sched_gap {
	int64_t ready_ns;
	int64_t slept_ns;
	bool switched; /* the thread has lost its processor, or may have */
};

struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e);

/* tk_sched_lose - readings may be missing, or end here. */
void tk_sched_lose(struct tk_sched *s);

/* tk_sched_lost - the result of tk_sched_since() if the thread is known to have been without a processor since the mark. */
struct tk_sched_sums tk_sched_lost(const struct tk_sched *s, const struct tk_sched_mark *mark);

/* tk_sched_since - the sums since a mark. Inline, because every hold asks for them, and few threads lose their processor. */
static inline struct tk_sched_sums tk_sched_since(const struct tk_sched *s, const struct tk_sched_mark *mark)
{
	if (!mark->epoch || mark->epoch != s->now.epoch)
		return (struct tk_sched_sums){ -1, -1, -1, -1 };
	if (s->now.off_ns <= mark->off_ns)
		return (struct tk_sched_sums){ 0, 0, 0, 0 };
	return tk_sched_lost(s, mark);
}

/* tk_sched_limit - limits each sum to @ns. */
void tk_sched_limit(struct tk_sched_sums *sums, int64_t ns);

#endif
