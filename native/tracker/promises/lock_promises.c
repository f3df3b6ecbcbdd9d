/* SPDX-License-Identifier: MIT */
/* lock_promises.c - mutexes, read-write locks and spin locks: exclusion, releases by other threads, order of waiters. */
/*
 * An acquisition is stamped after it happened, a release before. So the time between the stamps of a hold is part of the real
 * hold. If another hold begins in that time, the two holds really overlap, if the first hold still exists: a program may reuse
 * the memory of a lock without any event. So a verdict waits until the first holder releases the lock. No thread releases a lock
 * that does not exist any more.
 */
#include "promises.h"


void vf_lock_init(const struct tk_event *e, struct vf_object *o)
{
	int64_t type = tk_number(&e->e, o->kind == PTT_KIND_MUTEX ? TK_KIND : TK_PREFERENCE, 0);

	o->type = (uint8_t)type;
	o->robust = tk_number(&e->e, TK_ROBUST, 0) != 0;
}

bool vf_checks_owner(const struct vf_object *o)
{
	return o->kind == PTT_KIND_MUTEX && o->flags & PTT_OBJECT_MADE && !o->inconsistent &&
	       (o->robust || o->type == PTHREAD_MUTEX_RECURSIVE_NP || o->type == PTHREAD_MUTEX_ERRORCHECK_NP);
}

/* ---- preference of writers ---- */

static bool prefers_writers(const struct vf_object *o)
{
	return o->kind == PTT_KIND_RWLOCK && (o->flags & (PTT_OBJECT_MADE | PTT_OBJECT_SHARED | VF_MISUSED)) == PTT_OBJECT_MADE &&
	       o->type == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

static void forget_queue(struct vf_object *o)
{
	o->lock.alone.id = o->lock.queued.id = o->lock.overtaker.id = 0;
}

/* Whether other threads have held the lock since before @ts, all of them as readers. */
static bool read_held_since(struct ptt_verify *v, const struct vf_object *o, uint32_t thread, int64_t ts)
{
	bool others_hold = false;

	for (uint32_t i = o->holds; i; i = VF_HOLD(v, i)->object_next) {
		const struct vf_hold *h = VF_HOLD(v, i);

		if (!h->mode)
			return false;
		others_hold |= h->thread != thread && h->taken.ts < ts;
	}
	return others_hold;
}

/*
 * A reader has to wait although only readers hold the lock: so a writer is in the queue. A single writer waits, since before the
 * call of the reader. So it is this writer, and it stays in the queue until it has the lock.
 */
static void reader_waits(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o)
{
	int64_t before = VF_THREAD_AT(v, e->thread)->last_ns;

	if (!o->lock.queued.id && o->lock.alone.id && o->lock.alone.ts < before &&
	    read_held_since(v, o, e->thread, before))
		o->lock.queued = e->e;
}

static void writer_waits(const struct tk_event *e, struct vf_object *o)
{
	forget_queue(o);
	o->lock.writer = 0;
	if (o->lock.writers++ == 0) {
		o->lock.writer = e->thread;
		o->lock.alone = e->e;
	}
}

/* A writer took the lock, or gave up. */
static void writer_waited(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o, bool has_it)
{
	if (has_it && o->lock.overtaker.id && o->lock.writer == e->thread)
		VF_TELL(v, VF_RWLOCK_PREFERENCE, o, &o->lock.alone, &o->lock.queued, &o->lock.overtaker, &e->e);
	forget_queue(o);
	o->lock.writer = 0;
	if (o->lock.writers)
		o->lock.writers--;
}

/* A reader took the lock. If its call began after the writer was in the queue, and readers held the lock, it had to wait. */
static void reader_came(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o)
{
	const struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	if (!o->lock.queued.id || t->last_ns <= o->lock.queued.ts + VF_SLACK_NS)
		return;
	v->checks[VF_RWLOCK_PREFERENCE]++;
	if (!o->lock.overtaker.id && read_held_since(v, o, e->thread, o->lock.queued.ts))
		o->lock.overtaker = e->e;
}

/* ---- waits ---- */

void vf_lock_wait(struct ptt_verify *v, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6;
	struct vf_object *o = vf_object(v, e, kind, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);

	vf_touch(v, o, e);
	t->blocked = (struct vf_call){ .object = vf_number_of(v, o), .generation = o->generation, .in = e->e };
	if (!prefers_writers(o))
		return;
	if (tk_number(&e->e, TK_WRITE, 0))
		writer_waits(e, o);
	else
		reader_waits(v, e, o);
}

/* The wait of a thread for this lock is over. Return: whether the thread is a writer. */
static bool wait_over(struct ptt_verify *v, const struct tk_event *e, const struct vf_object *o)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	bool write;

	if (vf_same(v, &t->blocked) != o)
		return false;
	write = tk_number(&t->blocked.in, TK_WRITE, 0) != 0;
	t->blocked.in.id = 0;
	return write;
}

void vf_lock_wait_end(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, e->id >> 6, e->object);

	vf_touch(v, o, e);
	if (wait_over(v, e, o) && prefers_writers(o))
		writer_waited(v, e, o, false);
}

/* ---- taking ---- */

static enum vf_rule exclusion_rule(const struct vf_object *o, const struct vf_hold *h, bool after_wait)
{
	if (o->kind == PTT_KIND_RWLOCK)
		return VF_RWLOCK_EXCLUSION;
	if (o->kind == PTT_KIND_SPIN)
		return VF_SPIN_EXCLUSION;
	if (after_wait || (h && h->after_wait))
		return VF_COND_MUTEX;
	return h && h->let_go ? VF_MUTEX_RECURSION : VF_MUTEX_EXCLUSION;
}

/* The mutex reports that its last owner died. */
static void owner_died(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o)
{
	const struct vf_hold *h = o->holds ? VF_HOLD(v, o->holds) : NULL;

	v->checks[VF_MUTEX_ROBUST]++;
	if (o->flags & PTT_OBJECT_MADE && !o->robust)
		VF_TELL(v, VF_MUTEX_ROBUST, o, &o->init, &e->e);
	if (h && h->thread != e->thread && vf_private(v, o)) {
		struct vf_thread *owner = VF_THREAD_AT(v, h->thread);

		owner->gone = e->e;
		owner->owned = h->taken;
		owner->gone_rule = VF_MUTEX_ROBUST;
	}
	vf_drop_holds(v, o);
	o->inconsistent = true;
}

void vf_consistent(struct ptt_verify *v, const struct tk_event *e)
{
	vf_object(v, e, PTT_KIND_MUTEX, e->object)->inconsistent = false;
}

/* The thread holds the lock already, or held an earlier lock at this address. */
static void take_again(struct vf_object *o, struct vf_hold *h, const struct tk_event *e, bool shared)
{
	bool again = (o->flags & PTT_OBJECT_MADE && o->kind == PTT_KIND_MUTEX && o->type == PTHREAD_MUTEX_RECURSIVE_NP) ||
		     (shared && h->mode);

	h->conflict.id = 0;
	if (again) {
		h->depth++;
		return;
	}
	h->twice = o->flags & PTT_OBJECT_MADE && o->type == PTHREAD_MUTEX_ERRORCHECK_NP && o->kind == PTT_KIND_MUTEX && !h->twice;
	h->let_go = false;
	h->depth = h->twice ? 2 : 1;
	h->mode = shared ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE;
	h->taken = e->e;
}

static void hold_begin(struct ptt_verify *v, const struct tk_event *e, const struct vf_object *o, bool shared,
		       bool after_wait)
{
	uint8_t mode = shared ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE;
	struct vf_hold *h = VF_HOLD(v, tk_hold_begin(&v->t, e, vf_number_of(v, o), mode));

	h->after_wait = after_wait;
	h->let_go = h->twice = false;
	h->taken = e->e;
	h->conflict.id = 0;
}

void vf_acquire(struct ptt_verify *v, const struct tk_event *e)
{
	bool shared = tk_meanings[e->id].action == TK_ACQUIRE_SHARED;
	uint32_t kind = e->id >> 6;
	struct vf_object *o = vf_object(v, e, kind, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_hold *mine = NULL;
	bool after_wait;
	uint32_t slot;

	vf_touch(v, o, e);
	after_wait = kind == PTT_KIND_MUTEX && t->cond.in.id && vf_cond_mutex_taken(v, t, o);
	slot = vf_number_of(v, o) % VF_RECENT;
	t->taken[slot].object = vf_number_of(v, o);
	t->taken[slot].generation = o->generation;
	t->taken[slot].ts = e->ts;
	if (unlikely(t->blocked.in.id)) {
		bool write = wait_over(v, e, o);

		if (prefers_writers(o) && write)
			writer_waited(v, e, o, !shared);
	}
	if (!tk_knows_holds(TK_PROCESS(&v->t, e->process), kind, e->object))
		return; /* not all of its releases are recorded */
	if (unlikely(o->flags & VF_MISUSED)) {
		v->skips[VF_SKIP_MISUSED]++;
		return;
	}
	if (kind == PTT_KIND_MUTEX && tk_has(e->id, TK_RESULT) && tk_number(&e->e, TK_RESULT, 0) == EOWNERDEAD)
		owner_died(v, e, o);
	if (kind == PTT_KIND_RWLOCK && shared && o->lock.queued.id)
		reader_came(v, e, o);
	v->checks[exclusion_rule(o, NULL, after_wait)]++;
	for (uint32_t i = o->holds; i; i = VF_HOLD(v, i)->object_next) {
		struct vf_hold *h = VF_HOLD(v, i);

		if (h->thread == e->thread) {
			mine = h;
		} else if (!(shared && h->mode) && !h->conflict.id && h->taken.ts < e->ts) {
			h->conflict = e->e;
			h->conflict_rule = (uint8_t)exclusion_rule(o, h, after_wait);
		}
	}
	if (mine)
		take_again(o, mine, e, shared);
	else
		hold_begin(v, e, o, shared, after_wait);
}

/* ---- releasing ---- */

/* A thread releases a lock that it does not hold, as far as it is known. */
static void release_foreign(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o)
{
	struct vf_hold *other = o->holds ? VF_HOLD(v, o->holds) : NULL;

	if (!other && !(o->flags & PTT_OBJECT_MADE))
		return; /* held since before the trace began */
	if (other && vf_checks_owner(o)) {
		/* the next event says whether the library refused, as it must */
		v->checks[VF_MUTEX_OWNER]++;
		VF_THREAD_AT(v, e->thread)->bad_free = e->e;
		if (!other->conflict.id) {
			other->conflict = e->e;
			other->conflict_rule = VF_MUTEX_OWNER;
		}
		return;
	}
	/* Undefined: the state of the lock is unknown until its next initialization. */
	vf_drop_holds(v, o);
	o->flags |= VF_MISUSED;
	forget_queue(o);
	v->skips[VF_SKIP_MISUSED]++;
}

static void release_own(struct ptt_verify *v, const struct tk_event *e, struct vf_object *o, struct vf_hold *h)
{
	if (h->conflict.id) {
		if (e->ts > h->conflict.ts)
			VF_TELL(v, (enum vf_rule)h->conflict_rule, o, &h->taken, &h->conflict, &e->e);
		h->conflict.id = 0;
	}
	if (h->twice && h->let_go)
		VF_TELL(v, VF_MUTEX_RECURSION, o, &h->taken, &e->e);
	if (h->depth > 1)
		v->checks[VF_MUTEX_RECURSION] += o->kind == PTT_KIND_MUTEX;
	h->let_go = true;
	if (--h->depth == 0)
		tk_hold_end(&v->t, (uint32_t)(h - VF_HOLD(v, 0)));
}

void vf_release(struct ptt_verify *v, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6;
	struct vf_object *o = vf_object(v, e, kind, e->object);
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_hold *h;

	vf_touch(v, o, e);
	tk_released(&v->t, vf_number_of(v, o), e);
	if (t->call.in.id && vf_same(v, &t->call) == o)
		t->call.freed = true;
	if (t->cond.in.id && kind == PTT_KIND_MUTEX)
		vf_cond_mutex_freed(v, t, o, e->ts);
	if (unlikely(o->flags & VF_MISUSED) || tk_is_numbered(e->object))
		return; /* unknown state, or acquisitions are not recorded */
	h = vf_hold_of(v, o, e->thread);
	if (likely(h))
		release_own(v, e, o, h);
	else
		release_foreign(v, e, o);
}

void vf_settle_bad_free(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_object *o = vf_object(v, e, PTT_KIND_MUTEX, t->bad_free.object);
	bool refused = e->object == t->bad_free.object && tk_number(&e->e, TK_RESULT, 0) != 0;

	for (uint32_t i = refused ? o->holds : 0; i; i = VF_HOLD(v, i)->object_next) {
		struct vf_hold *h = VF_HOLD(v, i);

		if (h->conflict_rule == VF_MUTEX_OWNER && h->conflict.ts == t->bad_free.ts)
			h->conflict.id = 0;
	}
	t->bad_free.id = 0;
}
