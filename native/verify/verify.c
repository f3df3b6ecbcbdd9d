/* SPDX-License-Identifier: MIT */
/* verify.c - the verifier as a whole: what each event means to it, its beginning and its end. */
#include "internal.h"

int ptt_verify_version(void)
{
	return PTT_VERIFY_VERSION;
}

/* ---- what events mean ---- */

static const char *const field_names[VF_FIELDS] = {
	[VF_F_RESULT] = "result",       [VF_F_COUNT] = "count",   [VF_F_VALUE] = "value",
	[VF_F_SERIAL] = "serial",       [VF_F_MUTEX] = "mutex",   [VF_F_SHARED] = "shared",
	[VF_F_WRITE] = "write",         [VF_F_KIND] = "kind",     [VF_F_CANCELLED] = "cancelled",
	[VF_F_ROUTINE] = "routine",     [VF_F_ROBUST] = "robust", [VF_F_PREFERENCE] = "preference",
	[VF_F_DEADLINE] = "deadline_ns", [VF_F_CLOCK] = "clock",
};

struct meaning {
	const char *role;
	uint32_t kind;
	enum vf_action action;
};

/* The first line that fits counts; kind 0 = any. */
static const struct meaning meanings[] = {
	{ "init", 0, VF_INIT },
	{ "destroy", 0, VF_DESTROY },
	{ "acquire", VF_SEM, VF_SEM_TAKEN },
	{ "acquire", 0, VF_ACQUIRE },
	{ "acquire-shared", 0, VF_ACQUIRE_SHARED },
	{ "release", 0, VF_RELEASE },
	{ "wait", VF_ONCE, VF_ONCE_WAIT },
	{ "wait", 0, VF_WAIT },
	{ "wait-in", VF_THREAD, VF_JOIN_IN },
	{ "wait-out", VF_THREAD, VF_JOIN_OUT },
	{ "wait-in", VF_COND, VF_COND_IN },
	{ "wait-out", VF_COND, VF_COND_OUT },
	{ "wait-in", VF_BARRIER, VF_BARRIER_IN },
	{ "wait-out", VF_BARRIER, VF_BARRIER_OUT },
	{ "wait-out", VF_ONCE, VF_ONCE_WAIT_END },
	{ "wait-out", VF_MUTEX, VF_WAIT_END },
	{ "wait-out", VF_RWLOCK, VF_WAIT_END },
	{ "wait-out", VF_SEM, VF_WAIT_END },
	{ "wake", VF_SEM, VF_SEM_POST },
	{ "wake", VF_COND, VF_SIGNAL },
	{ "wake-all", VF_COND, VF_BROADCAST },
	{ "run-in", 0, VF_ONCE_BEGIN },
	{ "run-out", 0, VF_ONCE_END },
	{ "create", 0, VF_CREATE },
	{ "begin", 0, VF_BEGIN },
	{ "end", 0, VF_END },
	{ "error", 0, VF_FAILED },
	{ "lost", 0, VF_LOST },
	{ "call-in", 0, VF_CALL_IN },
	{ "call-out", 0, VF_CALL_OUT },
};

/* What the role alone does not tell. */
static const struct {
	const char *name;
	enum vf_action action;
} named[] = {
	{ "MUTEX_CONSISTENT", VF_CONSISTENT },
	{ "LEVEL_CHANGED", VF_LEVEL },
	{ "PROCESS_FORK", VF_FORK },
	{ "THREAD_CREATE_IN", VF_CREATE_IN },
	{ "THREAD_CREATE_OUT", VF_CREATE_OUT },
	{ "THRD_CREATE_IN", VF_CREATE_IN },
	{ "THRD_CREATE_OUT", VF_CREATE_OUT },
};

static enum vf_action action_of(const struct ptt_event_type *type)
{
	uint32_t kind = type->id >> 6;

	/* What the C library does with locks of its own is nobody's to be promised. */
	if (kind == VF_LLL)
		return VF_IGNORE;
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (strcmp(named[i].name, type->name) == 0)
			return named[i].action;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (strcmp(meanings[i].role, type->role) == 0 && (!meanings[i].kind || meanings[i].kind == kind))
			return meanings[i].action;
	return VF_IGNORE;
}

static void learn_catalogue(struct ptt_verify *v)
{
	for (unsigned int i = 0; i < ptt_event_type_count; i++) {
		const struct ptt_event_type *type = &ptt_event_types[i];
		uint32_t id = type->id & PTT_ID_MASK;

		v->type[id] = type;
		v->action[id] = (uint8_t)action_of(type);
		for (uint8_t k = 0; k < type->field_count; k++)
			for (int f = 0; f < VF_FIELDS; f++)
				if (strcmp(type->fields[k].name, field_names[f]) == 0)
					v->field_at[id][f] = (uint8_t)(k + 1);
	}
	vf_learn_calls(v);
}

/* ---- beginning ---- */

struct ptt_verify *ptt_verify_create(void)
{
	struct ptt_verify *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	if (vf_pool_open(&v->objects, sizeof(struct vf_object)) < 0 ||
	    vf_pool_open(&v->threads, sizeof(struct vf_thread)) < 0 ||
	    vf_pool_open(&v->holds, sizeof(struct vf_hold)) < 0 ||
	    vf_pool_open(&v->waiters, sizeof(struct vf_waiter)) < 0) {
		ptt_verify_destroy(v);
		return NULL;
	}
	learn_catalogue(v);
	return v;
}

void ptt_verify_destroy(struct ptt_verify *v)
{
	vf_pool_close(&v->objects);
	vf_pool_close(&v->threads);
	vf_pool_close(&v->holds);
	vf_pool_close(&v->waiters);
	rd_map_free(&v->object_of);
	rd_map_free(&v->thread_of);
	rd_map_free(&v->begin_of);
	rd_map_free(&v->row_of);
	free(v->threads_of);
	for (uint32_t i = 0; i < v->process_count; i++)
		free(v->processes[i].shared);
	free(v->processes);
	free(v->rows);
	free(v->begun);
	free(v);
}

static int processes_reach(struct ptt_verify *v, uint32_t number)
{
	uint32_t before = v->process_count;

	if (rd_array_reach((void **)&v->processes, &v->process_count, number, sizeof(*v->processes)) < 0)
		return -ENOMEM;
	for (uint32_t i = before; i < v->process_count; i++)
		v->processes[i] = (struct vf_process){
			.known = { .alive = VF_NEVER, .monotonic = VF_NEVER, .realtime = VF_NEVER },
			.last = VF_NEVER,
			.forked = VF_NEVER,
		};
	return 0;
}

int ptt_verify_process(struct ptt_verify *v, uint32_t number, const struct ptt_verify_process *known)
{
	if (processes_reach(v, number) < 0)
		return -ENOMEM;
	v->processes[number].known = *known;
	return 0;
}

int ptt_verify_share(struct ptt_verify *v, uint32_t process, uint64_t from, uint64_t to)
{
	struct vf_process *p;

	if (processes_reach(v, process) < 0)
		return -ENOMEM;
	p = &v->processes[process];
	if (rd_array_reach((void **)&p->shared, &p->shared_room, p->shared_count, sizeof(*p->shared)) < 0)
		return -ENOMEM;
	p->shared[p->shared_count++] = (struct vf_range){ from, to };
	return 0;
}

int ptt_verify_thread(struct ptt_verify *v, uint32_t number, uint32_t process, uint32_t tid)
{
	if (rd_array_reach((void **)&v->threads_of, &v->thread_count, number, sizeof(*v->threads_of)) < 0 ||
	    processes_reach(v, process) < 0)
		return -ENOMEM;
	if (v->threads_of[number])
		return 0;
	return vf_thread_new(v, number, process, tid) ? 0 : -ENOMEM;
}

/* ---- events ---- */

/* From here on nothing that was known of the process counts. */
static void start_anew(struct ptt_verify *v, const struct vf_event *e)
{
	v->processes[e->process].epoch++;
	vf_forget_recent(v, e->process, e->e.ts, VF_SKIP_LEVEL);
}

static void thread_anew(struct ptt_verify *v, struct vf_thread *t)
{
	t->epoch = v->processes[t->process].epoch;
	t->call.in.id = t->blocked.in.id = t->barrier.in.id = t->waited.in.id = t->cond.in.id = 0;
	t->create.id = t->gone.id = t->bad_free.id = 0;
}

static void object_gone(struct ptt_verify *v, const struct vf_event *e)
{
	struct vf_object *o = vf_object_there(v, e, e->e.id >> 6);

	if (!o)
		return;
	vf_settle(v, o, e->e.ts);
	vf_object_gone(v, o);
}

static void object_init(struct ptt_verify *v, const struct vf_event *e)
{
	uint32_t kind = e->e.id >> 6;
	struct vf_object *o = vf_object(v, e, kind, e->e.object);

	if (!o)
		return;
	vf_settle(v, o, e->e.ts);
	o->before |= o->flags & VF_INITED || o->last_ts != VF_NEVER;
	vf_renew(v, o);
	o->init = e->e;
	/* one that has a name is for everybody who knows it */
	o->flags |= VF_INITED;
	if (vf_number(v, &e->e, VF_F_SHARED, !v->field_at[e->e.id][VF_F_SHARED]))
		o->flags |= VF_SHARED;
	vf_touch(v, o, e);
	if (kind == VF_MUTEX || kind == VF_RWLOCK || kind == VF_SPIN) {
		vf_lock_init(v, e, o);
	} else if (kind == VF_COND) {
		o->type = (uint8_t)vf_number(v, &e->e, VF_F_CLOCK, 0);
	} else if (kind == VF_BARRIER) {
		o->barrier.count = (uint32_t)vf_number(v, &e->e, VF_F_COUNT, 0);
	} else if (kind == VF_SEM) {
		o->sem.value = (uint32_t)vf_number(v, &e->e, VF_F_VALUE, 0);
		o->sem.positive_ts = e->e.ts;
	}
}

static void once_wait_end(struct ptt_verify *v, const struct vf_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	vf_once_returned(v, e, &t->waited);
	t->waited.in.id = 0;
	t->blocked.in.id = 0;
}

static void rare_event(struct ptt_verify *v, struct vf_event *e, enum vf_action action)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	switch (action) {
	case VF_INIT:
		object_init(v, e);
		break;
	case VF_DESTROY:
		object_gone(v, e);
		break;
	case VF_WAIT:
		vf_lock_wait(v, e);
		break;
	case VF_WAIT_END:
		vf_lock_wait_end(v, e);
		break;
	case VF_BARRIER_IN:
		vf_barrier_in(v, e);
		break;
	case VF_BARRIER_OUT:
		vf_barrier_out(v, e);
		break;
	case VF_ONCE_BEGIN:
		vf_once_begin(v, e);
		break;
	case VF_ONCE_END:
		vf_once_end(v, e);
		break;
	case VF_ONCE_WAIT:
		vf_once_wait(v, e);
		break;
	case VF_ONCE_WAIT_END:
		once_wait_end(v, e);
		break;
	case VF_CREATE:
		vf_create(v, e);
		break;
	case VF_CREATE_IN:
		t->create = e->e;
		vf_call_in(v, e);
		break;
	case VF_CREATE_OUT:
		t->create.id = 0;
		vf_call_out(v, e);
		break;
	case VF_END:
		vf_end(v, e);
		break;
	case VF_JOIN_IN:
		vf_join_in(v, e);
		break;
	case VF_JOIN_OUT:
		vf_join_out(v, e);
		break;
	case VF_FAILED:
		vf_failed(v, e);
		break;
	case VF_CONSISTENT:
		vf_consistent(v, e);
		break;
	case VF_FORK:
		v->processes[e->process].forked = e->e.ts;
		vf_forget_recent(v, e->process, e->e.ts, VF_SKIP_FORKED);
		break;
	case VF_LEVEL:
		start_anew(v, e);
		break;
	case VF_LOST:
		v->processes[e->process].known.incomplete = 1;
		start_anew(v, e);
		break;
	default:
		break;
	}
}

static void event(struct ptt_verify *v, struct vf_event *e, enum vf_action action)
{
	switch (action) {
	case VF_ACQUIRE:
	case VF_ACQUIRE_SHARED:
		vf_acquire(v, e, action == VF_ACQUIRE_SHARED);
		break;
	case VF_RELEASE:
		vf_release(v, e);
		break;
	case VF_COND_IN:
		vf_cond_in(v, e);
		break;
	case VF_COND_OUT:
		vf_cond_out(v, e);
		break;
	case VF_SIGNAL:
	case VF_BROADCAST:
		vf_cond_wake(v, e, action == VF_BROADCAST);
		break;
	case VF_SEM_TAKEN:
		vf_sem_taken(v, e);
		break;
	case VF_SEM_POST:
		vf_sem_post(v, e);
		break;
	case VF_CALL_IN:
		vf_call_in(v, e);
		break;
	case VF_CALL_OUT:
		vf_call_out(v, e);
		break;
	default:
		rare_event(v, e, action);
	}
}

/* Where events may be missing, a call with its beginning and its end can still be judged. */
static void lone_event(struct ptt_verify *v, struct vf_event *e, enum vf_action action)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	const struct ptt_verify_event none = { .id = 0 };

	switch (action) {
	case VF_CALL_IN:
	case VF_CREATE_IN:
	case VF_COND_IN:
	case VF_BARRIER_IN:
	case VF_JOIN_IN:
		t->call = (struct vf_call){ .in = e->e };
		break;
	case VF_CALL_OUT:
	case VF_CREATE_OUT:
	case VF_COND_OUT:
	case VF_BARRIER_OUT:
	case VF_JOIN_OUT:
		vf_result(v, e, t->call.in.id + 1 == e->e.id && t->call.in.object == e->e.object ? &t->call.in : &none);
		t->call.in.id = 0;
		break;
	case VF_FAILED:
		vf_failed(v, e);
		break;
	case VF_IGNORE:
		break;
	default:
		v->skips[VF_SKIP_INCOMPLETE]++;
	}
}

int ptt_verify_feed(struct ptt_verify *v, const struct ptt_columns *c, int64_t n)
{
	for (int64_t i = 0; i < n && !v->error; i++) {
		uint32_t id = c->id[i] & PTT_ID_MASK, number = c->thread[i];
		enum vf_action action = (enum vf_action)v->action[id];
		struct vf_process *p;
		struct vf_thread *t;
		struct vf_event e;

		if (unlikely(number >= v->thread_count || !v->threads_of[number]))
			continue;
		e = (struct vf_event){
			.e = { c->ts[i], c->object[i], c->site[i], c->payload[i], number, id },
			.thread = v->threads_of[number],
		};
		t = VF_THREAD_AT(v, e.thread);
		e.process = t->process;
		p = &v->processes[e.process];
		p->last = e.e.ts;
		if (unlikely(t->epoch != p->epoch))
			thread_anew(v, t);
		if (unlikely(action == VF_BEGIN)) {
			vf_begin(v, &e);
		} else if (unlikely(p->known.incomplete)) {
			lone_event(v, &e, action);
		} else if (action != VF_IGNORE) {
			if (unlikely(t->bad_free.id))
				vf_settle_bad_free(v, &e);
			event(v, &e, action);
		}
		VF_THREAD_AT(v, e.thread)->last_ts = e.e.ts;
	}
	return v->error;
}

/* ---- end ---- */

int ptt_verify_finish(struct ptt_verify *v, int64_t patience)
{
	uint32_t kept = 0;

	v->patience = patience;
	for (uint32_t i = 1; i < v->objects.count; i++)
		if (VF_OBJECT(v, i)->serial && VF_OBJECT(v, i)->epoch == v->processes[VF_OBJECT(v, i)->process].epoch)
			vf_settle(v, VF_OBJECT(v, i), INT64_MAX);
	vf_conds_finish(v);
	vf_barriers_finish(v);
	vf_blocked_finish(v);
	for (uint32_t i = 0; i < v->row_count; i++)
		if (v->rows[i].count)
			v->rows[kept++] = v->rows[i];
	v->row_count = kept;
	return v->error;
}
