/* SPDX-License-Identifier: MIT */
/* processor.h - the time of a thread without a processor, by the readings of the scheduler among its events. */
/*
 * A reading precedes each event of a thread that lost its processor since the event before. So the thread ran between two events
 * without a reading in between. Between an event and the next reading, the sums are known. Some readings contain only the time
 * that the thread ran. The next whole reading then divides the time without a processor. For the times in between, only the
 * sum is known. If the thread ran all the time up to the whole reading, the whole reading holds for both.
 *
 * A SCHED_SWITCHED has no numbers: the thread lost its processor at some time after the event before. This time between
 * two events is open: the thread may have been without a processor for any part of it. The next reading with numbers has
 * the sum of all open times before it. So the time without a processor since a mark has a lower and an upper bound. The
 * time is known if the bounds are nearly equal: then the lower bound counts.
 *
 * A SCHED_PARTIAL also says that a thread does not always have a reading if it slept. From then on all times between two
 * readings are open. Only between a reading and the event that it precedes the thread ran.
 *
 * In the functions below, @ts is the time of an event of the thread, and @before the time of its event before.
 */
#ifndef PTT_TRACKER_PROCESSOR_H
#define PTT_TRACKER_PROCESSOR_H

#include "state.h"

/* Sums since some time. Two marks may be subtracted if their epochs are equal and not 0. */
struct tk_sched_mark {
	int64_t off_ns;	   /* without a processor, up to the last reading with numbers */
	int64_t ready_ns;  /* ns of off_ns that the thread could have run, up to the last whole reading */
	int64_t vague_ns;  /* the part of off_ns after the last whole reading */
	int64_t open_ns;   /* open times after the last reading with numbers */
	uint32_t readings; /* how many readings with numbers there were */
	uint32_t slices;   /* how often the thread got a processor, up to the last whole reading */
	uint32_t epoch;	   /* of off_ns; 0 = unknown. Changes when readings may be missing */
	uint32_t divided;  /* epoch of ready_ns */
};

struct tk_sched {
	struct tk_sched_mark now; /* if is_partial, without its open_ns */
	int64_t read;  /* time of the last reading with numbers */
	int64_t ran;   /* total of the last reading with numbers */
	int64_t ready; /* total of the last whole reading */
	int64_t partial; /* time of the last SCHED_PARTIAL */
	int64_t before_partial; /* time of the thread's event before it */
	int64_t opened_ns; /* open times between the last two readings with numbers */
	uint32_t epochs; /* number of epochs so far */
	bool has_read; /* there are numbers in this epoch */
	bool is_partial;
};

/* Differences between a mark and now, in ns; -1 = unknown. */
struct tk_sched_sums {
	int64_t off_ns;
	int64_t ready_ns;
	int64_t ready_least_ns; /* bounds of ready_ns; known if off_ns is known */
	int64_t ready_most_ns;
};

/* Minimum of two times since the event before: the thread was ready, and the thread slept, also in waits. */
struct tk_sched_gap {
	int64_t ready_ns;
	int64_t slept_ns;
	bool switched; /* the thread has lost its processor, or may have */
};

/* tk_sched_read - adds a reading. */
struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e, int64_t before);

/* tk_sched_lose - readings may be missing, or end here. */
void tk_sched_lose(struct tk_sched *s);

/* tk_sched_open - open times since the last reading with numbers. */
static inline int64_t tk_sched_open(const struct tk_sched *s, int64_t ts, int64_t before)
{
	return !s->is_partial ? s->now.open_ns : before > s->read ? ts - s->read : 0;
}

/* tk_sched_mark - the sums so far. */
static inline struct tk_sched_mark tk_sched_mark(const struct tk_sched *s, int64_t ts, int64_t before)
{
	struct tk_sched_mark mark = s->now;

	mark.open_ns = tk_sched_open(s, ts, before);
	return mark;
}

/* tk_sched_lost - the result of tk_sched_since() at @open ns of open times, if the thread may have been without a processor since the mark. */
struct tk_sched_sums tk_sched_lost(const struct tk_sched *s, const struct tk_sched_mark *mark, int64_t open);

/* tk_sched_since - the sums since a mark. Inline, because every hold asks for them, and few threads lose their processor. */
static inline struct tk_sched_sums tk_sched_since(const struct tk_sched *s, const struct tk_sched_mark *mark, int64_t ts,
						  int64_t before)
{
	int64_t open = tk_sched_open(s, ts, before);

	if (!mark->epoch || mark->epoch != s->now.epoch)
		return (struct tk_sched_sums){ -1, -1, -1, -1 };
	if (s->now.off_ns <= mark->off_ns && open == (s->now.readings == mark->readings ? mark->open_ns : 0))
		return (struct tk_sched_sums){ 0, 0, 0, 0 };
	return tk_sched_lost(s, mark, open);
}

/* tk_sched_runs - is the thread known to run while it has no reading? */
static inline bool tk_sched_runs(const struct tk_sched *s)
{
	return s->now.epoch && !s->is_partial;
}

/*
 * tk_sched_total - how long the thread has run in its life at its last event, @ts; -1 = unknown
 * If the thread's last reading had no numbers, the result may be too low, by TK_SCHED_OPEN_MAX at most.
 */
#define TK_SCHED_OPEN_MAX INT64_C(4000000)
static inline int64_t tk_sched_total(const struct tk_sched *s, int64_t ts)
{
	int64_t since = ts > s->read ? ts - s->read : 0, open = tk_sched_open(s, ts, ts);

	if (!s->has_read || open > TK_SCHED_OPEN_MAX)
		return -1;
	return s->ran + (since > open ? since - open : 0);
}

/* tk_sched_limit - limits each sum to @ns. */
void tk_sched_limit(struct tk_sched_sums *sums, int64_t ns);

#endif
