/* SPDX-License-Identifier: MIT */
/* counts.c - barriers and semaphores, with counts that must add up, and once controls, which run once only. */
/*
 * Arrivals and posts are stamped before they happen, departures and takes afterwards. So at any moment, at most as many threads
 * have arrived as the stamps say, and at least as many have left. If the stamps do not add up, the real counts did not either.
 * The order of events with equal time stamps is unknown, so a verdict waits until the time is later.
 */
#include "promises.h"

/* ---- barriers ---- */

static uint64_t rounds(const struct vf_object *o)
{
	return o->barrier.in / o->barrier.count;
}

static bool may_have_left(const struct vf_object *o)
{
	return o->barrier.out <= rounds(o) * o->barrier.count;
}

static bool judged(struct ptt_verify *v, const struct vf_object *o)
{
	return vf_private(v, o) && o->barrier.count;
}

void vf_barrier_in(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_BARRIER, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	vf_settle(v, o, e->ts);
	t->barrier = (struct vf_call){ .object = vf_number_of(v, o), .generation = o->generation, .in = e->e };
	if (!judged(v, o))
		return;
	o->barrier.in++;
	o->barrier.last_in = e->e;
	if (o->barrier.in % o->barrier.count == 0)
		o->barrier.full = e->e;
	if (o->barrier.early.id && may_have_left(o))
		o->barrier.early.id = 0;
}

static void check_serials(struct ptt_verify *v, struct vf_object *o, const struct tk_event *e)
{
	uint64_t inside = o->barrier.in - o->barrier.out;
	struct ptt_verify_violation *row;

	v->checks[VF_BARRIER_SERIAL]++;
	if (o->barrier.serials <= rounds(o) && o->barrier.serials + inside >= rounds(o))
		return;
	row = VF_TELL(v, VF_BARRIER_SERIAL, o, &o->init, &o->barrier.full, &e->e);
	if (row) {
		row->number[0] = (int64_t)o->barrier.serials;
		row->number[1] = (int64_t)rounds(o);
	}
	o->flags |= VF_MISUSED;
}

void vf_barrier_out(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_BARRIER, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	bool mine = vf_same(v, &t->barrier) == o;

	vf_result(v, e, &t->barrier.in);
	t->barrier.in.id = 0;
	/* a thread with a failed wait may have taken part or not: it counts as inside for ever */
	if (!mine || !judged(v, o) || (result != 0 && result != PTHREAD_BARRIER_SERIAL_THREAD))
		return;
	o->barrier.out++;
	o->barrier.serials += result == PTHREAD_BARRIER_SERIAL_THREAD;
	v->checks[VF_BARRIER_EARLY]++;
	if (!may_have_left(o) && !o->barrier.early.id) {
		o->barrier.early = e->e;
		o->barrier.early_in = o->barrier.in % o->barrier.count;
	} else if (!o->barrier.early.id) {
		check_serials(v, o, e);
	}
}

void vf_barriers_finish(struct ptt_verify *v)
{
	for (uint32_t i = 1; i < v->t.objects.count; i++) {
		const struct vf_object *o = VF_OBJECT(v, i);

		if (o->kind != PTT_KIND_BARRIER || !vf_is_there(v, o) || !judged(v, o))
			continue;
		if (o->barrier.out < rounds(o) * o->barrier.count)
			vf_not_woken(v, o->process, o, o->barrier.full.ts, &o->init, &o->barrier.full);
	}
}

/* ---- semaphores ---- */

void vf_sem_taken(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_SEM, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	vf_touch(v, o, e);
	vf_settle(v, o, e->ts);
	if (t->blocked.in.id && vf_same(v, &t->blocked) == o)
		t->blocked.in.id = 0;
	if (!vf_private(v, o))
		return;
	if (o->before_it && t->last_ns <= o->init.ts) {
		v->skips[VF_SKIP_REUSED]++; /* may be a unit of the semaphore that was here before */
		return;
	}
	v->checks[VF_SEM_VALUE]++;
	o->sem.takes++;
	if (o->sem.takes > vf_units(o) && !o->sem.below.id)
		o->sem.below = e->e;
}

void vf_sem_post(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_SEM, e->object);

	vf_touch(v, o, e);
	vf_settle(v, o, e->ts);
	if (o->sem.takes >= vf_units(o))
		o->sem.positive_ts = e->ts;
	o->sem.posts++;
	o->sem.post = e->e;
	if (o->sem.below.id && o->sem.takes <= vf_units(o))
		o->sem.below.id = 0;
}

/* ---- once ---- */

/*
 * The beginning of a call of a thread, or of its wait, that began before @ts; NULL: none. During the call, the program must not
 * have initialized the control again.
 */
static const struct ptt_event *inside_since(struct ptt_verify *v, const struct vf_thread *t,
						   const struct vf_object *o, int64_t ts)
{
	if (vf_same(v, &t->waited) == o && t->waited.in.ts < ts - VF_SLACK_NS)
		return &t->waited.in;
	if (vf_same(v, &t->call) == o && t->call.in.ts < ts - VF_SLACK_NS)
		return &t->call.in;
	return NULL;
}

void vf_once_begin(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_ONCE, e->object);
	const struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	const struct ptt_event *inside;

	v->checks[VF_ONCE_TWICE]++;
	inside = o->once.end.id ? inside_since(v, t, o, o->once.end.ts) : NULL;
	if (inside)
		VF_TELL(v, VF_ONCE_TWICE, o, inside, &o->once.end, &e->e);
	else if (o->once.end.id)
		v->skips[VF_SKIP_REUSED]++;
	o->once.end.id = 0;
	if (o->once.runner && o->once.runner != e->thread) {
		o->once.again = e->e;
		return;
	}
	o->once.runner = e->thread;
	o->once.begin = e->e;
	o->once.again.id = o->once.early.id = 0;
}

void vf_once_end(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_ONCE, e->object);
	bool cancelled = tk_number(&e->e, TK_CANCELLED, 0) != 0;

	if (o->once.runner != e->thread)
		return;
	if (o->once.again.id && e->ts > o->once.again.ts)
		VF_TELL(v, VF_ONCE_TWICE, o, &o->once.begin, &o->once.again, &e->e);
	if (o->once.early.id && e->ts > o->once.early.ts + VF_SLACK_NS)
		VF_TELL(v, VF_ONCE_EARLY, o, &o->once.begin, &o->once.early, &e->e);
	o->once.runner = 0;
	o->once.again.id = o->once.early.id = o->once.end.id = 0;
	if (!cancelled)
		o->once.end = e->e;
}

void vf_once_wait(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_ONCE, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	t->waited = (struct vf_call){ .object = vf_number_of(v, o), .generation = o->generation, .in = e->e };
	t->blocked = t->waited;
}

void vf_once_returned(struct ptt_verify *v, const struct tk_event *e, const struct vf_call *since)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_ONCE, e->object);

	if (tk_number(&e->e, TK_RESULT, 0) != 0)
		return;
	v->checks[VF_ONCE_EARLY]++;
	/* the call began during the run, so it was for this run */
	if (o->once.runner && o->once.runner != e->thread && !o->once.early.id && vf_same(v, since) == o &&
	    since->in.ts > o->once.begin.ts)
		o->once.early = e->e;
}
