/* SPDX-License-Identifier: MIT */
/* threads.c - threads: nobody is joined before the end or runs before the creation, and nobody is left waiting. */
/*
 * A thread's end is stamped before it is gone, a join when it has returned: an end that is stamped after the join, or
 * after a mutex that said its owner was dead, was that of a thread that still ran.
 */
#include "internal.h"

static void map_put(struct ptt_verify *v, struct rd_map *map, uint64_t a, uint64_t b, uint64_t value)
{
	struct rd_entry *entry = rd_map_put(map, a, b);

	if (entry)
		entry->value = value;
	else
		v->error = -ENOMEM;
}

/* ---- creation ---- */

void vf_create(struct ptt_verify *v, const struct vf_event *e)
{
	const struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	int64_t serial = vf_number(v, &e->e, VF_F_SERIAL, 0);
	struct rd_entry *entry;

	if (!serial || !t->create.id)
		return;
	v->checks[VF_CREATE_BEGIN]++;
	entry = rd_map_find(&v->begin_of, e->process, (uint64_t)serial);
	if (entry && v->begun[entry->value].ts < t->create.ts)
		vf_tell(v,
			&(struct vf_claim){
				.rule = VF_CREATE_BEGIN,
				.process = e->process,
				.kind = VF_THREAD,
				.object = e->e.object,
			},
			VF_EVENTS(&v->begun[entry->value], &t->create, &e->e));
}

void vf_begin(struct ptt_verify *v, struct vf_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	int64_t serial = vf_number(v, &e->e, VF_F_SERIAL, 0);

	if (t->last_ts != VF_NEVER) {
		uint32_t reader = t->reader, tid = t->tid, number;

		vf_cond_leave(v, t);
		number = vf_thread_new(v, reader, e->process, tid);
		if (!number)
			return;
		t->ended = true;
		e->thread = number;
		t = VF_THREAD_AT(v, number);
	}
	t->pthread = e->e.object;
	map_put(v, &v->thread_of, e->process, e->e.object, e->thread);
	if (!serial)
		return;
	if (rd_array_reach((void **)&v->begun, &v->begun_room, v->begun_count, sizeof(*v->begun)) < 0) {
		v->error = -ENOMEM;
		return;
	}
	map_put(v, &v->begin_of, e->process, (uint64_t)serial, v->begun_count);
	v->begun[v->begun_count++] = e->e;
}

/* ---- end ---- */

void vf_end(struct ptt_verify *v, const struct vf_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	bool robust = t->gone_rule == VF_MUTEX_ROBUST;

	if (t->gone.id && t->pthread && t->pthread == e->e.object && e->e.ts > t->gone.ts) {
		const struct ptt_verify_event none = { .id = 0 };

		vf_tell(v,
			&(struct vf_claim){
				.rule = (enum vf_rule)t->gone_rule,
				.process = e->process,
				.kind = robust ? VF_MUTEX : VF_THREAD,
				.object = t->gone.object,
			},
			VF_EVENTS(robust ? &t->held : &none, &t->gone, &e->e));
	}
	t->gone.id = 0;
	t->ended = true;
	vf_cond_leave(v, t);
}

/* ---- joins ---- */

void vf_join_in(struct ptt_verify *v, const struct vf_event *e)
{
	struct rd_entry *entry = rd_map_find(&v->thread_of, e->process, e->e.object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	t->blocked = (struct vf_call){ .thread = entry ? (uint32_t)entry->value : 0, .in = e->e };
}

void vf_join_out(struct ptt_verify *v, const struct vf_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread), *target;
	bool mine = t->blocked.in.id + 1 == e->e.id && t->blocked.in.object == e->e.object;
	const struct ptt_verify_event none = { .id = 0 };

	vf_result(v, e, mine ? &t->blocked.in : &none);
	if (!mine)
		return;
	t->blocked.in.id = 0;
	if (vf_number(v, &e->e, VF_F_RESULT, 0) != 0 || !t->blocked.thread)
		return;
	v->checks[VF_JOIN_END]++;
	target = VF_THREAD_AT(v, t->blocked.thread);
	if (target->ended || target->process != e->process)
		return;
	target->gone = e->e;
	target->gone_rule = VF_JOIN_END;
}

/* ---- the end of the trace ---- */

static void lock_finish(struct ptt_verify *v, const struct vf_thread *t, const struct vf_object *o)
{
	const struct ptt_verify_event none = { .id = 0 };
	bool shared = o->flags & VF_SHARED || vf_number(v, &t->blocked.in, VF_F_KIND, 0) & 0x80;

	/* who released it before the wait need not have been the last */
	if (o->lock.holds || o->lock.free_ts == VF_NEVER || o->lock.free_ts <= t->blocked.in.ts)
		return;
	if (shared || o->flags & VF_MISUSED) {
		v->skips[shared ? VF_SKIP_SHARED : VF_SKIP_MISUSED]++;
		return;
	}
	if (o->kind == VF_RWLOCK && !vf_private(v, o))
		return;
	vf_not_woken(v, o->process, o, o->lock.free_ts, &t->blocked.in, &none);
}

static void blocked_finish(struct ptt_verify *v, const struct vf_thread *t)
{
	const struct vf_object *o = vf_same(v, &t->blocked);
	int64_t began = t->blocked.in.ts;

	if (t->blocked.thread && v->action[t->blocked.in.id] == VF_JOIN_IN) {
		const struct vf_thread *target = VF_THREAD_AT(v, t->blocked.thread);
		const struct ptt_verify_event none = { .id = 0 };

		if (target->ended)
			vf_not_woken(v, t->process, NULL, target->last_ts > began ? target->last_ts : began,
				     &t->blocked.in, &none);
	} else if (o && (o->kind == VF_MUTEX || o->kind == VF_RWLOCK)) {
		lock_finish(v, t, o);
	} else if (o && o->kind == VF_SEM && vf_private(v, o) && o->sem.takes < o->sem.value + o->sem.posts) {
		vf_not_woken(v, t->process, o, o->sem.positive_ts > began ? o->sem.positive_ts : began,
			     &t->blocked.in, &o->sem.post);
	} else if (o && o->kind == VF_ONCE && o->once.end.id && o->once.end.ts > began) {
		vf_not_woken(v, t->process, o, o->once.end.ts, &t->blocked.in, &o->once.end);
	}
}

void vf_blocked_finish(struct ptt_verify *v)
{
	for (uint32_t i = 1; i < v->threads.count; i++) {
		const struct vf_thread *t = VF_THREAD_AT(v, i);
		const struct vf_process *p = &v->processes[t->process];

		if (!t->ended && t->blocked.in.id && t->epoch == p->epoch && !p->known.incomplete)
			blocked_finish(v, t);
	}
}
