/* SPDX-License-Identifier: MIT */
/* calls.c - calls: compares their results with the events. A try may fail only if another thread has the lock. */
#include "promises.h"

void vf_failed(struct ptt_verify *v, const struct tk_event *e)
{
	uint32_t call = (e->id & ~63u) | ((uint32_t)tk_number(&e->e, TK_ROUTINE, 0) & 63);
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	const char *name = tk_meanings[call].type ? tk_meanings[call].type->name : "";
	struct vf_object *o;
	struct vf_hold *h;

	vf_result_of(v, e, call, result, VF_NONE);
	if (VF_PROCESS(v, e->process)->known.incomplete || strcmp(name, "MUTEX_UNLOCK_IN") != 0 || result != EPERM)
		return;
	o = vf_object(v, e, PTT_KIND_MUTEX, e->object);
	h = vf_hold_of(v, o, e->thread);
	if (!h || !vf_checks_owner(o) || !vf_private(v, o))
		return;
	v->checks[VF_MUTEX_OWNER]++;
	VF_TELL(v, VF_MUTEX_OWNER, o, &h->taken, &e->e);
	vf_drop_holds(v, o);
}

/* ---- tries ---- */


/* Whether no thread holds a lock, waits for it, or is in a call that may take it, now and in the last moment. */
static bool free_for_all(struct ptt_verify *v, const struct vf_object *o, const struct tk_event *e)
{
	int64_t other = o->last_thread == e->thread ? o->other_ts : o->last_ts;

	if (o->calls || (other != TK_NEVER && other + VF_SLACK_NS >= e->ts) || !vf_private(v, o))
		return false;
	if (o->kind == PTT_KIND_SEM)
		return !o->sem.below.id && o->sem.takes < o->sem.value + o->sem.posts;
	return !o->holds && !o->lock.writers;
}

void vf_call_in(struct ptt_verify *v, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6;
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_object *o;
	bool counted = kind == PTT_KIND_MUTEX || kind == PTT_KIND_RWLOCK || kind == PTT_KIND_SPIN || kind == PTT_KIND_SEM;

	t->call = (struct vf_call){ .in = e->e };
	if ((!counted && kind != PTT_KIND_ONCE) || v->makes[e->id])
		return;
	o = vf_object(v, e, kind, e->object);
	t->call.object = vf_number_of(v, o);
	t->call.generation = o->generation;
	if (!counted)
		return;
	t->call.quiet = v->tries[e->id] && free_for_all(v, o, e);
	vf_touch(v, o, e);
	o->calls++;
	t->call.events = o->events;
}

static void tried(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o, const struct vf_call *call)
{
	int64_t result = tk_number(&e->e, TK_RESULT, 0);

	v->checks[VF_TRY_BUSY]++;
	if (o->refused.id || result != (o->kind == PTT_KIND_SEM ? EAGAIN : EBUSY) || call->events != o->events)
		return;
	o->tried = call->in;
	o->refused = e->e;
}

static void unlocked(struct ptt_verify *v, const struct tk_event *e, const struct vf_object *o, const struct vf_call *call)
{
	if (!vf_checks_owner(o) || strcmp(tk_meanings[e->id].type->name, "MUTEX_UNLOCK_OUT") != 0)
		return;
	v->checks[VF_MUTEX_OWNER]++;
	/* the call succeeded although the mutex did not belong to the caller */
	if (!call->freed && tk_number(&e->e, TK_RESULT, 0) == 0)
		VF_TELL(v, VF_MUTEX_OWNER, o, &o->init, &call->in, &e->e);
}

void vf_call_out(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_call call = t->call;
	struct vf_object *o;

	if (call.in.id + 1 != e->id) {
		vf_result(v, e, VF_NONE);
		return;
	}
	t->call.in.id = 0;
	vf_result(v, e, &call.in);
	o = vf_same(v, &call);
	if (!o)
		return;
	if (o->kind == PTT_KIND_ONCE) {
		vf_once_returned(v, e, &call);
		return;
	}
	if (call.quiet)
		tried(v, e, o, &call);
	unlocked(v, e, o, &call);
	if (o->calls)
		o->calls--;
	vf_touch(v, o, e);
}
