/* SPDX-License-Identifier: MIT */
/* processor.c - adds up what readings say of a thread's time without a processor. */
#include "processor.h"

bool tk_sched_read(struct tk_sched *s, const struct tk_event *e, bool in_wait)
{
	int64_t ran = tk_number(&e->e, TK_RAN, -1), total = tk_number(&e->e, TK_READY, 0), off, ready;
	uint32_t slices = (uint32_t)tk_number(&e->e, TK_SLICES, 0);
	bool has = ran >= 0, follows = has && s->has_read, switched = !follows || slices != s->now.slices;

	if (follows && switched) {
		/* the clocks are not read at the very same moment */
		off = (e->ts - s->read) - (ran - s->ran);
		off = off > 0 ? off : 0;
		ready = total - s->ready;
		ready = ready < off ? ready : off;
		s->now.off_ns += off;
		s->now.ready_ns += ready;
		s->now.slept_ns += in_wait ? 0 : off - ready;
	}
	if (!follows)
		s->now.epoch = ++s->epochs;
	s->now.slices = slices;
	s->has_read = has;
	s->read = e->ts;
	s->ran = ran;
	s->ready = total;
	return switched;
}

void tk_sched_lose(struct tk_sched *s)
{
	s->now.epoch = 0;
	s->has_read = false;
}
