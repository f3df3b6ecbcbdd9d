/* SPDX-License-Identifier: MIT */
/* verify.c - the verifier as a whole: creation, the handler of each event, and the end. */
#include "promises.h"

int ptt_verify_version(void)
{
	return PTT_VERIFY_VERSION;
}

/* ---- beginning ---- */

static const struct vf_process new_process = {
	.known = { .alive = TK_NEVER, .monotonic = TK_NEVER, .realtime = TK_NEVER },
	.forked = TK_NEVER,
};
static const struct tk_layout layout = {
	.process = { sizeof(struct vf_process), &new_process },
	.thread = { sizeof(struct vf_thread), NULL },
	.object = { sizeof(struct vf_object), NULL },
	.hold = { sizeof(struct vf_hold), NULL },
	.wait = { sizeof(struct vf_waiter), NULL },
	.wakeup = { sizeof(struct vf_wakeup), NULL },
	.cache = sizeof(struct vf_cache),
};

struct ptt_verify *ptt_verify_create(void)
{
	struct ptt_verify *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->t.apart = true;
	v->t.object_made = vf_object_made;
	v->t.replaced = vf_replaced;
	if (tk_open(&v->t, &layout) < 0) {
		ptt_verify_destroy(v);
		return NULL;
	}
	vf_learn_calls(v);
	return v;
}

void ptt_verify_destroy(struct ptt_verify *v)
{
	tk_close(&v->t);
	rd_map_free(&v->begin_of);
	rd_map_free(&v->row_of);
	free(v->rows);
	free(v->begun);
	free(v);
}

int ptt_verify_process(struct ptt_verify *v, uint32_t number, const struct ptt_verify_process *known)
{
	if (tk_process_reach(&v->t, number) < 0)
		return -ENOMEM;
	VF_PROCESS(v, number)->known = *known;
	return 0;
}

/* ---- events ---- */

/* Drops the known state of a process: events may be missing. */
static void start_anew(struct ptt_verify *v, const struct tk_event *e)
{
	VF_PROCESS(v, e->process)->epoch++;
	vf_forget_recent(v, e->process, e->ts, VF_SKIP_LEVEL);
}

static void thread_anew(struct ptt_verify *v, struct vf_thread *t)
{
	t->epoch = VF_PROCESS(v, t->process)->epoch;
	t->call.in.id = t->blocked.in.id = t->barrier.in.id = t->waited.in.id = t->cond.in.id = 0;
	t->create.id = t->gone.id = t->bad_free.id = 0;
}

static void object_gone(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = VF_OBJECT(v, tk_known_object(&v->t, e->process, e->id >> 6, e->object));

	/* Element 0 stands for an object that was never seen. */
	if (!o->generation || o->flags & PTT_OBJECT_ENDED)
		return;
	vf_settle(v, o, e->ts);
	vf_object_gone(v, o);
}

static void object_init(struct ptt_verify *v, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6;
	struct vf_object *o = vf_object(v, e, kind, e->object);

	vf_settle(v, o, e->ts);
	o->before_it |= o->flags & PTT_OBJECT_MADE || o->last_ts != TK_NEVER;
	vf_renew(v, o);
	o->init = e->e;
	/* every process may open a named semaphore */
	o->flags |= PTT_OBJECT_MADE;
	if (tk_number(&e->e, TK_SHARED, !tk_has(e->id, TK_SHARED)))
		o->flags |= PTT_OBJECT_SHARED;
	vf_touch(v, o, e);
	if (kind == PTT_KIND_MUTEX || kind == PTT_KIND_RWLOCK || kind == PTT_KIND_SPIN) {
		vf_lock_init(e, o);
	} else if (kind == PTT_KIND_COND) {
		o->type = (uint8_t)tk_number(&e->e, TK_CLOCK, 0);
	} else if (kind == PTT_KIND_BARRIER) {
		o->barrier.count = (uint32_t)tk_number(&e->e, TK_COUNT, 0);
	} else if (kind == PTT_KIND_SEM) {
		o->sem.value = (uint32_t)tk_number(&e->e, TK_VALUE, 0);
		o->sem.positive_ts = e->ts;
	}
}

static void lock_wait(struct ptt_verify *v, const struct tk_event *e)
{
	if (e->id >> 6 == PTT_KIND_ONCE)
		vf_once_wait(v, e);
	else
		vf_lock_wait(v, e);
}

static void lock_wait_end(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	if (e->id >> 6 != PTT_KIND_ONCE) {
		vf_lock_wait_end(v, e);
		return;
	}
	vf_once_returned(v, e, &t->waited);
	t->waited.in.id = 0;
	t->blocked.in.id = 0;
}

static void create_in(struct ptt_verify *v, const struct tk_event *e)
{
	VF_THREAD_AT(v, e->thread)->create = e->e;
	vf_call_in(v, e);
}

static void create_out(struct ptt_verify *v, const struct tk_event *e)
{
	VF_THREAD_AT(v, e->thread)->create.id = 0;
	vf_call_out(v, e);
}

static void forked(struct ptt_verify *v, const struct tk_event *e)
{
	VF_PROCESS(v, e->process)->forked = e->ts;
	vf_forget_recent(v, e->process, e->ts, VF_SKIP_FORKED);
}

static void lost(struct ptt_verify *v, const struct tk_event *e)
{
	VF_PROCESS(v, e->process)->known.incomplete = 1;
	start_anew(v, e);
}

/* Handlers by the meaning of events. POSIX promises nothing about other events. */
static void (*const handlers[TK_ACTIONS])(struct ptt_verify *v, const struct tk_event *e) = {
	[TK_ACQUIRE] = vf_acquire,	 [TK_ACQUIRE_SHARED] = vf_acquire, [TK_RELEASE] = vf_release,
	[TK_WAIT] = lock_wait,		 [TK_WAIT_END] = lock_wait_end,	   [TK_INIT] = object_init,
	[TK_DESTROY] = object_gone,	 [TK_COND_IN] = vf_cond_in,	   [TK_COND_OUT] = vf_cond_out,
	[TK_SIGNAL] = vf_cond_wake,	 [TK_BROADCAST] = vf_cond_wake,	   [TK_SEM_TAKEN] = vf_sem_taken,
	[TK_SEM_POST] = vf_sem_post,	 [TK_BARRIER_IN] = vf_barrier_in,  [TK_BARRIER_OUT] = vf_barrier_out,
	[TK_ONCE_BEGIN] = vf_once_begin, [TK_ONCE_END] = vf_once_end,	   [TK_CALL_IN] = vf_call_in,
	[TK_CALL_OUT] = vf_call_out,	 [TK_TRY_IN] = vf_call_in,	   [TK_TRY_OUT] = vf_call_out,
	[TK_CREATE_IN] = create_in,	 [TK_CREATE_OUT] = create_out,	   [TK_CREATE] = vf_create,
	[TK_BEGIN] = vf_begin,		 [TK_END] = vf_end,		   [TK_JOIN_IN] = vf_join_in,
	[TK_JOIN_OUT] = vf_join_out,	 [TK_FAILED] = vf_failed,	   [TK_CONSISTENT] = vf_consistent,
	[TK_FORK] = forked,		 [TK_LEVEL] = start_anew,	   [TK_LOST] = lost,
};

/* If events may be missing, only a call with its beginning and its end can be judged. */
static void lone_event(struct ptt_verify *v, const struct tk_event *e, enum tk_action action)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	switch (action) {
	case TK_CALL_IN:
	case TK_TRY_IN:
	case TK_CREATE_IN:
	case TK_COND_IN:
	case TK_BARRIER_IN:
	case TK_JOIN_IN:
		t->call = (struct vf_call){ .in = e->e };
		break;
	case TK_CALL_OUT:
	case TK_TRY_OUT:
	case TK_CREATE_OUT:
	case TK_COND_OUT:
	case TK_BARRIER_OUT:
	case TK_JOIN_OUT:
		vf_result(v, e, t->call.in.id + 1 == e->id && t->call.in.object == e->object ? &t->call.in : VF_NONE);
		t->call.in.id = 0;
		break;
	case TK_FAILED:
		vf_failed(v, e);
		break;
	default:
		v->skips[VF_SKIP_INCOMPLETE]++;
	}
}

static inline void event(struct tracker *tracker, struct tk_event *e, enum tk_action action)
{
	struct ptt_verify *v = (struct ptt_verify *)(void *)tracker;
	const struct vf_process *p = VF_PROCESS(v, e->process);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	if (unlikely(t->epoch != p->epoch))
		thread_anew(v, t);
	if (unlikely(action == TK_BEGIN)) {
		vf_begin(v, e);
	} else if (!handlers[action] || e->id >> 6 == PTT_KIND_LLL) {
		return; /* internal locks of the C library, about which POSIX promises nothing */
	} else if (unlikely(p->known.incomplete)) {
		lone_event(v, e, action);
	} else {
		if (unlikely(t->bad_free.id))
			vf_settle_bad_free(v, e);
		handlers[action](v, e);
	}
}

int ptt_verify_feed(struct ptt_verify *v, const struct ptt_columns *c, int64_t n)
{
	return tk_feed(&v->t, c, 0, n, event, NULL);
}

/* ---- end ---- */

int ptt_verify_finish(struct ptt_verify *v, int64_t patience)
{
	uint32_t kept = 0;

	v->patience = patience;
	for (uint32_t i = 1; i < v->t.objects.count; i++)
		if (vf_is_there(v, VF_OBJECT(v, i)))
			vf_settle(v, VF_OBJECT(v, i), INT64_MAX);
	vf_conds_finish(v);
	vf_barriers_finish(v);
	vf_blocked_finish(v);
	for (uint32_t i = 0; i < v->row_count; i++)
		if (v->rows[i].count)
			v->rows[kept++] = v->rows[i];
	v->row_count = kept;
	return v->t.error;
}
