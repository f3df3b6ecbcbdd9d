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

/* Divides the time without a processor at a whole reading: @off ns since the reading before, and the undivided time before. */
static struct tk_sched_gap divide(struct tk_sched *s, int64_t off, int64_t ready)
{
	int64_t vague = s->now.vague_ns, all = at_least_0(off + vague);

	ready = least(ready, all);
	s->now.off_ns += all - vague;
	s->now.ready_ns += ready;
	return (struct tk_sched_gap){ at_least_0(ready - at_least_0(vague)), at_least_0(off - ready), true };
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

/* Adds a reading that follows another reading. */
static struct tk_sched_gap follow(struct tk_sched *s, const struct tk_event *e, const struct numbers *n)
{
	/* The clocks are read one after the other: if the thread has kept its processor, this is near 0, above or below. */
	int64_t off = (e->ts - s->read) - (n->ran - s->ran);

	if (n->ready >= 0 && s->now.divided && n->slices == s->now.slices) {
		s->now.off_ns -= s->now.vague_ns;
		return (struct tk_sched_gap){ 0, 0, false };
	}
	if (n->ready >= 0 && s->now.divided)
		return divide(s, off, n->ready - s->ready);
	s->now.off_ns += off;
	s->now.vague_ns += off;
	return (struct tk_sched_gap){ 0, 0, n->ready >= 0 || off > 0 };
}

struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e)
{
	const struct numbers n = numbers_of(e);
	struct tk_sched_gap gap = { 0, 0, true };

	if (n.ran < 0) {
		tk_sched_lose(s);
		s->now.epoch = ++s->epochs;
		return gap;
	}
	/* A signal handler interrupted this reading after it had its numbers. The reading in the handler is newer. */
	if (s->has_read && n.ran < s->ran)
		return (struct tk_sched_gap){ 0, 0, false };
	if (s->has_read)
		gap = follow(s, e, &n);
	else
		s->now.epoch = ++s->epochs;
	if (n.ready >= 0) {
		if (!s->has_read || !s->now.divided)
			s->now.divided = ++s->epochs;
		s->now.vague_ns = 0;
		s->now.slices = n.slices;
		s->ready = n.ready;
	}
	s->has_read = true;
	s->read = e->ts;
	s->ran = n.ran;
	return gap;
}

void tk_sched_lose(struct tk_sched *s)
{
	s->now.epoch = s->now.divided = 0;
	s->now.vague_ns = 0;
	s->has_read = false;
}

struct tk_sched_sums tk_sched_lost(const struct tk_sched *s, const struct tk_sched_mark *mark)
{
	int64_t off = s->now.off_ns - mark->off_ns, ready = s->now.ready_ns - mark->ready_ns, min = 0, max = off;

	if (mark->divided && mark->divided == s->now.divided) {
		max = least(off, ready + at_least_0(s->now.vague_ns));
		min = least(max, at_least_0(ready - at_least_0(mark->vague_ns)));
	}
	return (struct tk_sched_sums){ off, min == max ? min : -1, min, max };
}

void tk_sched_limit(struct tk_sched_sums *sums, int64_t ns)
{
	sums->off_ns = least(sums->off_ns, ns);
	sums->ready_ns = least(sums->ready_ns, ns);
	sums->ready_least_ns = least(sums->ready_least_ns, ns);
	sums->ready_most_ns = least(sums->ready_most_ns, ns);
}
