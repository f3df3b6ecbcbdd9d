/* SPDX-License-Identifier: MIT */
/* settle.c - delayed verdicts: another event of the same moment may still explain a suspicious event. */
#include "promises.h"

uint64_t vf_units(const struct vf_object *o)
{
	return o->sem.value + o->sem.posts;
}

static void tell_early(struct ptt_verify *v, struct vf_object *o)
{
	struct ptt_verify_violation *row =
		VF_TELL(v, VF_BARRIER_EARLY, o, &o->init, &o->barrier.last_in, &o->barrier.early);

	if (row) {
		row->number[0] = (int64_t)o->barrier.early_in;
		row->number[1] = o->barrier.count;
	}
	o->barrier.early.id = 0;
	o->flags |= VF_MISUSED; /* its rounds are unknown from here on */
}

static void tell_below(struct ptt_verify *v, struct vf_object *o)
{
	struct ptt_verify_violation *row = VF_TELL(v, VF_SEM_VALUE, o, &o->init, &o->sem.post, &o->sem.below);

	if (row) {
		row->number[0] = (int64_t)o->sem.takes;
		row->number[1] = (int64_t)vf_units(o);
	}
	o->sem.below.id = 0;
	o->flags |= VF_MISUSED; /* its value is unknown from here on */
}

/* Reports a failed try if the time is later, or drops it if another thread came at the same moment. */
static void settle_refusal(struct ptt_verify *v, struct vf_object *o, int64_t ts, bool by_other)
{
	bool late = ts > o->refused.ts + VF_SLACK_NS;

	if (late)
		VF_TELL(v, VF_TRY_BUSY, o, &o->init, &o->tried, &o->refused);
	if (late || by_other)
		o->refused.id = 0;
}

void vf_touch(struct ptt_verify *v, struct vf_object *o, const struct tk_event *e)
{
	if (unlikely(o->refused.id))
		settle_refusal(v, o, e->ts, o->refused.number != e->number);
	o->events++;
	if (o->last_thread != e->thread) {
		o->other_ts = o->last_ts;
		o->last_thread = e->thread;
	}
	o->last_ts = e->ts;
}

void vf_settle(struct ptt_verify *v, struct vf_object *o, int64_t ts)
{
	if (o->refused.id)
		settle_refusal(v, o, ts, true);
	if (o->kind == PTT_KIND_SEM && o->sem.below.id && ts > o->sem.below.ts)
		tell_below(v, o);
	if (o->kind == PTT_KIND_BARRIER && o->barrier.early.id && ts > o->barrier.early.ts)
		tell_early(v, o);
}
