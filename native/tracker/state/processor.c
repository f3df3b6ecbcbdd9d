/* SPDX-License-Identifier: MIT */
/* processor.c - adds up what readings say of a thread's time without a processor. */
#include "processor.h"

static int64_t at_least_0(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

/* What a whole reading says of the time @off behind the one before, and of what the ones before that left open. */
static struct tk_sched_gap divide(struct tk_sched *s, int64_t off, int64_t ready, bool in_wait)
{
	int64_t vague = s->now.vague_ns, all = at_least_0(off + vague);

	ready = ready < all ? ready : all;
	s->now.off_ns += all - vague;
	s->now.ready_ns += ready;
	s->now.slept_ns += in_wait ? 0 : all - ready;
	return (struct tk_sched_gap){ at_least_0(ready - vague), at_least_0(off - ready), true };
}

struct tk_sched_gap tk_sched_read(struct tk_sched *s, const struct tk_event *e, bool in_wait)
{
	int64_t ran = tk_number(&e->e, TK_RAN, -1), ready = tk_number(&e->e, TK_READY, -1), off = 0;
	uint32_t slices = (uint32_t)tk_number(&e->e, TK_SLICES, s->now.slices);
	bool has = ran >= 0, whole = ready >= 0, follows = has && s->has_read && (s->has_whole || !whole);
	struct tk_sched_gap gap = { .switched = true };

	/* The clocks are not read at the very same moment: of a thread that has kept its processor, this may be more or less than 0. */
	if (follows)
		off = (e->ts - s->read) - (ran - s->ran);
	if (!follows) {
		s->now.epoch = ++s->epochs;
		s->has_whole = whole;
	} else if (!whole) {
		gap.switched = off > 0;
		s->now.off_ns += off;
	} else if (slices != s->now.slices) {
		gap = divide(s, off, ready - s->ready, in_wait);
	} else {
		gap.switched = false;
		s->now.off_ns -= s->now.vague_ns;
	}
	s->now.vague_ns = whole || !follows ? 0 : s->now.vague_ns + off;
	s->now.slices = slices;
	s->has_read = has;
	s->read = e->ts;
	s->ran = ran;
	if (whole)
		s->ready = ready;
	return gap;
}

void tk_sched_lose(struct tk_sched *s)
{
	s->now.epoch = 0;
	s->has_read = false;
}
