/* SPDX-License-Identifier: MIT */
/* processor.c - adds up the time of a thread without a processor, by the readings of the scheduler. */
#include "processor.h"

static int64_t at_least_0(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How far apart the bounds of a known time may be. The clocks are read one after the other, so no time is exact. */
static int64_t tolerance(int64_t ns)
{
	return ns > 64000 ? ns / 64 : 1000;
}

/*
 * Divides the time without a processor at a whole reading: @off ns since the reading before, and the undivided time before.
 * @open: open times before the event before
 */
static struct tk_sched_gap divide(struct tk_sched *s, int64_t off, int64_t ready, int64_t open)
{
	int64_t vague = s->now.vague_ns, all = at_least_0(off + vague);

	ready = least(ready, all);
	s->now.off_ns += all - vague;
	s->now.ready_ns += ready;
	return (struct tk_sched_gap){ at_least_0(ready - at_least_0(vague) - open), at_least_0(off - open - ready), true };
}

/* The numbers of a reading: totals of its thread since the thread began. */
struct numbers {
	int64_t ran;   /* ns; -1 = unknown */
	int64_t ready; /* ns; -1 = unknown */
	uint32_t slices;
};

/* A later reading has the missing numbers of a reading, if the thread has kept its processor in between. */
static struct numbers numbers_of(const struct tk_event *e)
{
	struct ptt_event whole = e->e;

	if (e->reading) {
		whole.id = RD_SCHED_KEPT;
		whole.payload += e->reading * PTT_SLOT_SIZE;
	}
	return (struct numbers){ tk_number(&e->e, TK_RAN, -1), tk_number(&whole, TK_READY, -1),
				 (uint32_t)tk_number(&whole, TK_SLICES, 0) };
}

/* Adds a reading that follows another reading. @open: open times before the event before */
static struct tk_sched_gap follow(struct tk_sched *s, const struct tk_event *e, const struct numbers *n, int64_t open)
{
	/* The clocks are read one after the other: if the thread has kept its processor, this is near 0, above or below. */
	int64_t off = (e->ts - s->read) - (n->ran - s->ran);

	if (n->ready >= 0 && s->now.divided && n->slices == s->now.slices) {
		s->now.off_ns -= s->now.vague_ns;
		return (struct tk_sched_gap){ 0, 0, false };
	}
	if (n->ready >= 0 && s->now.divided)
		return divide(s, off, n->ready - s->ready, open);
	s->now.off_ns += off;
	s->now.vague_ns += off;
	return (struct tk_sched_gap){ 0, 0, n->ready >= 0 || off > 0 };
}

/* A reading without numbers: the time since @before is open. */
static void leave_open(struct tk_sched *s, int64_t ts, int64_t before)
{
	if (s->has_read) {
		s->now.open_ns += ts - before;
		return;
	}
	tk_sched_lose(s);
	s->now.epoch = ++s->epochs;
}

struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e, int64_t before)
{
	const struct numbers n = numbers_of(e);
	struct tk_sched_gap gap = { 0, 0, true };
	bool kept = e->e.id == RD_SCHED_KEPT;
	int64_t open;

	/* a SCHED_PARTIAL and the numbers behind it are one reading */
	if (s->is_partial && before == s->partial)
		before = s->before_partial;
	if (e->e.id == RD_SCHED_PARTIAL) {
		s->is_partial = true;
		s->partial = e->ts;
		s->before_partial = before;
	}
	before = before > e->ts ? e->ts : before > s->read ? before : least(s->read, e->ts);
	if (n.ran < 0) {
		leave_open(s, e->ts, before);
		return gap;
	}
	/* A signal handler interrupted this reading after it had its numbers. The reading in the handler is newer. */
	if (s->has_read && n.ran < s->ran)
		return (struct tk_sched_gap){ 0, 0, false };
	open = s->is_partial ? before - s->read : s->now.open_ns;
	s->opened_ns = open + (kept ? 0 : e->ts - before);
	if (s->has_read)
		gap = follow(s, e, &n, open);
	else
		s->now.epoch = ++s->epochs;
	if (n.ready >= 0) {
		if (!s->has_read || !s->now.divided)
			s->now.divided = ++s->epochs;
		s->now.vague_ns = 0;
		s->now.slices = n.slices;
		s->ready = n.ready;
	}
	s->now.open_ns = 0;
	s->now.readings++;
	s->has_read = true;
	s->read = e->ts;
	s->ran = n.ran;
	return kept ? (struct tk_sched_gap){ 0, 0, false } : gap;
}

void tk_sched_lose(struct tk_sched *s)
{
	s->now.epoch = s->now.divided = 0;
	s->now.vague_ns = s->now.open_ns = 0;
	s->has_read = false;
}

struct tk_sched_sums tk_sched_lost(const struct tk_sched *s, const struct tk_sched_mark *mark, int64_t open)
{
	int64_t since = s->now.off_ns - mark->off_ns, ready = s->now.ready_ns - mark->ready_ns, min, max, off;

	if (s->now.readings == mark->readings) {
		min = 0;
		max = open - mark->open_ns;
	} else {
		/* of the sum of the first reading after the mark, an unknown part belongs to open times before the mark */
		min = mark->open_ns ? at_least_0(since - mark->open_ns) : since;
		max = since;
		if (s->now.readings == mark->readings + 1)
			max = least(max, s->opened_ns - mark->open_ns);
		max = (max > min ? max : min) + open;
	}
	if (max - min > tolerance(max))
		return (struct tk_sched_sums){ -1, -1, -1, -1 };
	off = min;
	min = 0;
	max = off;
	if (mark->divided && mark->divided == s->now.divided) {
		max = least(off, at_least_0(ready + at_least_0(s->now.vague_ns)));
		min = least(max, at_least_0(ready - at_least_0(mark->vague_ns) - mark->open_ns));
	}
	return (struct tk_sched_sums){ off, max - min <= (mark->open_ns ? tolerance(max) : 0) ? min : -1, min, max };
}

void tk_sched_limit(struct tk_sched_sums *sums, int64_t ns)
{
	sums->off_ns = least(sums->off_ns, ns);
	sums->ready_ns = least(sums->ready_ns, ns);
	sums->ready_least_ns = least(sums->ready_least_ns, ns);
	sums->ready_most_ns = least(sums->ready_most_ns, ns);
}
