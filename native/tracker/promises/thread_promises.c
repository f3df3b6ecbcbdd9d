/* SPDX-License-Identifier: MIT */
/* thread_promises.c - threads: no join before the end, no run before the creation, and no thread that is not woken. */
/*
 * The end of a thread is stamped before it happens, a join when it has returned. So if an end is stamped after the join, the
 * thread still ran. The same holds if a mutex reported the thread as its dead owner before.
 */
#include "promises.h"

/* ---- creation ---- */

void vf_create(struct ptt_verify *v, const struct tk_event *e)
{
	const struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	int64_t serial = tk_number(&e->e, TK_SERIAL, 0);
	struct rd_entry *entry;

	if (!serial || !t->create.id)
		return;
	v->checks[VF_CREATE_BEGIN]++;
	entry = rd_map_find(&v->begin_of, e->process, (uint64_t)serial);
	if (entry && v->begun[entry->value].ts < t->create.ts)
		vf_report(v, &(struct vf_claim){
			.rule = VF_CREATE_BEGIN, .process = e->process, .kind = PTT_KIND_THREAD,
			.object = e->object,
		}, VF_EVENTS(&v->begun[entry->value], &t->create, &e->e));
}

void vf_replaced(struct tracker *t, uint32_t thread)
{
	struct ptt_verify *v = (struct ptt_verify *)(void *)t;

	vf_cond_leave(v, VF_THREAD_AT(v, thread));
}

void vf_begin(struct ptt_verify *v, const struct tk_event *e)
{
	int64_t serial = tk_number(&e->e, TK_SERIAL, 0);

	if (!serial)
		return;
	if (rd_array_reach((void **)&v->begun, &v->begun_room, v->begun_count, sizeof(*v->begun)) < 0) {
		v->t.error = -ENOMEM;
		return;
	}
	tk_map_set(&v->t, &v->begin_of, e->process, (uint64_t)serial, v->begun_count);
	v->begun[v->begun_count++] = e->e;
}

/* ---- end ---- */

void vf_end(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	bool robust = t->gone_rule == VF_MUTEX_ROBUST;

	if (t->gone.id && t->pthread && t->pthread == e->object && e->ts > t->gone.ts) {

		vf_report(v, &(struct vf_claim){
			.rule = (enum vf_rule)t->gone_rule, .process = e->process,
			.kind = robust ? PTT_KIND_MUTEX : PTT_KIND_THREAD, .object = t->gone.object,
		}, VF_EVENTS(robust ? &t->owned : VF_NONE, &t->gone, &e->e));
	}
	t->gone.id = 0;
	tk_end(&v->t, e);
	vf_cond_leave(v, t);
}

/* ---- joins ---- */

void vf_join_in(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	t->blocked = (struct vf_call){ .thread = tk_thread_named(&v->t, e), .in = e->e };
}

void vf_join_out(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread), *target;
	bool mine = t->blocked.in.id + 1 == e->id && t->blocked.in.object == e->object;

	vf_result(v, e, mine ? &t->blocked.in : VF_NONE);
	if (!mine)
		return;
	t->blocked.in.id = 0;
	if (tk_number(&e->e, TK_RESULT, 0) != 0 || !t->blocked.thread)
		return;
	v->checks[VF_JOIN_END]++;
	target = VF_THREAD_AT(v, t->blocked.thread);
	if (target->flags & VF_GONE || target->process != e->process)
		return;
	target->gone = e->e;
	target->gone_rule = VF_JOIN_END;
}

/* ---- the end of the trace ---- */

static void lock_finish(struct ptt_verify *v, const struct vf_thread *t, const struct vf_object *o)
{
	bool shared = o->flags & PTT_OBJECT_SHARED || tk_number(&t->blocked.in, TK_KIND, 0) & 0x80;

	/* a release before the wait may not be the last release */
	if (o->holds || !o->releaser || o->release_ns <= t->blocked.in.ts)
		return;
	if (shared || o->flags & VF_MISUSED) {
		v->skips[shared ? VF_SKIP_SHARED : VF_SKIP_MISUSED]++;
		return;
	}
	if (o->kind == PTT_KIND_RWLOCK && !vf_private(v, o))
		return;
	vf_not_woken(v, o->process, o, o->release_ns, &t->blocked.in, VF_NONE);
}

static void blocked_finish(struct ptt_verify *v, const struct vf_thread *t)
{
	const struct vf_object *o = vf_same(v, &t->blocked);
	int64_t began = t->blocked.in.ts;

	if (t->blocked.thread && tk_meanings[t->blocked.in.id].action == TK_JOIN_IN) {
		const struct vf_thread *target = VF_THREAD_AT(v, t->blocked.thread);

		if (target->flags & VF_GONE)
			vf_not_woken(v, t->process, NULL, target->last_ns > began ? target->last_ns : began,
				     &t->blocked.in, VF_NONE);
	} else if (o && (o->kind == PTT_KIND_MUTEX || o->kind == PTT_KIND_RWLOCK)) {
		lock_finish(v, t, o);
	} else if (o && o->kind == PTT_KIND_SEM && vf_private(v, o) && o->sem.takes < o->sem.value + o->sem.posts) {
		vf_not_woken(v, t->process, o, o->sem.positive_ts > began ? o->sem.positive_ts : began,
			     &t->blocked.in, &o->sem.post);
	} else if (o && o->kind == PTT_KIND_ONCE && o->once.end.id && o->once.end.ts > began) {
		vf_not_woken(v, t->process, o, o->once.end.ts, &t->blocked.in, &o->once.end);
	}
}

void vf_blocked_finish(struct ptt_verify *v)
{
	for (uint32_t i = 1; i < v->t.threads.count; i++) {
		const struct vf_thread *t = VF_THREAD_AT(v, i);
		const struct vf_process *p = VF_PROCESS(v, t->process);

		if (!(t->flags & VF_GONE) && t->blocked.in.id && t->epoch == p->epoch && !p->known.incomplete)
			blocked_finish(v, t);
	}
}
