/* SPDX-License-Identifier: MIT */
/* cond_promises.c - condition variables: a wait must return with its mutex, and a signal must wake a waiter. */
/*
 * A thread certainly waits if another thread has taken the mutex after the waiter released it. POSIX says that a signal of that
 * other thread comes as if the waiter was blocked already (pthread_cond_wait). A signal wakes at least one waiter. So if more
 * threads certainly wait than are woken, the signal has woken one more. A waiter that returns for any reason reduces the number
 * of woken threads. So this number is never too large.
 */
#include "promises.h"

/* Removes a waiter from its condition. NULL: a new condition has that address by now. */
static const struct vf_waiter *leave(struct ptt_verify *v, struct vf_thread *t)
{
	const struct vf_waiter *w = VF_WAITER(v, t->cond.events);
	struct vf_object *mutex;
	bool same = vf_same(v, &t->cond);

	t->cond.in.id = 0;
	if (!same)
		return NULL;
	tk_wake_use(&v->t, t->cond.object, TK_NEVER);
	mutex = vf_mutex_of(v, w);
	if (mutex && mutex->calls)
		mutex->calls--;
	tk_wait_end(&v->t, t->cond.events);
	return w;
}

void vf_cond_leave(struct ptt_verify *v, struct vf_thread *t)
{
	if (t->cond.in.id)
		leave(v, t);
}

void vf_cond_in(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_object *o = vf_object(v, e, PTT_KIND_COND, e->object), *mutex;
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	uint64_t address = (uint64_t)tk_number(&e->e, TK_MUTEX, 0);
	struct vf_waiter *w;
	uint32_t number;

	vf_cond_leave(v, t); /* the trace lacks its end, or a signal handler waits during a wait */
	mutex = address ? vf_object(v, e, PTT_KIND_MUTEX, address) : NULL;
	number = tk_wait_begin(&v->t, e, vf_number_of(v, o), PTT_MODE_EXCLUSIVE);
	if (!number)
		return;
	w = VF_WAITER(v, number);
	w->freed = TK_NEVER;
	w->in = e->e;
	if (mutex) {
		w->mutex = vf_number_of(v, mutex);
		w->mutex_generation = mutex->generation;
		mutex->calls++;
		vf_touch(v, mutex, e);
	}
	t->cond = (struct vf_call){
		.object = vf_number_of(v, o), .generation = o->generation, .events = number, .in = e->e,
	};
	t->retaken = false;
}

void vf_cond_mutex_freed(struct ptt_verify *v, struct vf_thread *t, const struct vf_object *mutex, int64_t ts)
{
	struct vf_waiter *w;

	if (!vf_same(v, &t->cond))
		return;
	w = VF_WAITER(v, t->cond.events);
	if (vf_mutex_of(v, w) == mutex && w->freed == TK_NEVER)
		w->freed = ts;
}

bool vf_cond_mutex_taken(struct ptt_verify *v, struct vf_thread *t, const struct vf_object *mutex)
{
	const struct vf_waiter *w;

	if (!vf_same(v, &t->cond))
		return false;
	w = VF_WAITER(v, t->cond.events);
	if (w->freed == TK_NEVER || vf_mutex_of(v, w) != mutex)
		return false;
	return t->retaken = true;
}

void vf_cond_out(struct ptt_verify *v, const struct tk_event *e)
{
	struct vf_thread *t = VF_THREAD_AT(v, e->thread);
	struct vf_object *o = vf_object(v, e, PTT_KIND_COND, e->object);
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	bool mine = t->cond.in.id && vf_same(v, &t->cond) == o && t->cond.in.id + 1 == e->id;
	const struct vf_waiter *w;

	vf_result(v, e, mine ? &t->cond.in : VF_NONE);
	w = mine ? leave(v, t) : NULL;
	if (!w)
		return;
	if (result == EOWNERDEAD && vf_mutex_of(v, w))
		vf_mutex_of(v, w)->inconsistent = true;
	if ((result != 0 && result != ETIMEDOUT) || w->freed == TK_NEVER)
		return;
	v->checks[VF_COND_MUTEX]++;
	if (!t->retaken)
		VF_TELL(v, VF_COND_MUTEX, o, &w->in, &e->e);
}

/* ---- signals ---- */

/* Whether a waiter is certainly blocked, as seen from thread @by. */
static bool known_to_wait(const struct vf_thread *by, const struct vf_waiter *w)
{
	uint32_t slot = w->mutex % VF_RECENT;

	return w->freed != TK_NEVER && by->taken[slot].object == w->mutex && by->taken[slot].generation == w->mutex_generation &&
	       by->taken[slot].ts > w->freed;
}

void vf_cond_wake(struct ptt_verify *v, const struct tk_event *e)
{
	bool all = tk_meanings[e->id].action == TK_BROADCAST;
	struct vf_object *o = vf_object(v, e, PTT_KIND_COND, e->object);
	const struct vf_thread *by = VF_THREAD_AT(v, e->thread);
	uint32_t waiting = 0, woken = TK_WAKING(&v->t, o)->pending, most, wakeup;

	if (!o->waits)
		return;
	v->checks[VF_COND_WAKEUP]++;
	most = all ? UINT32_MAX : woken + 1;
	for (uint32_t i = o->waits; i && waiting < most; i = VF_WAITER(v, i)->object_next)
		waiting += VF_WAITER(v, i)->thread != e->thread && known_to_wait(by, VF_WAITER(v, i));
	if (waiting <= woken)
		return;
	wakeup = tk_wake(&v->t, e, vf_number_of(v, o), waiting - woken, all ? PTT_WAKE_BROADCAST : PTT_WAKE_SIGNAL);
	VF_WAKEUP(v, wakeup)->signal = e->e;
}

/* ---- the end ---- */

/* The time since which all waiters could have their mutexes; INT64_MAX: they could not, or it is unknown. */
static int64_t mutexes_free(struct ptt_verify *v, const struct vf_object *o)
{
	int64_t since = TK_NEVER;

	for (uint32_t i = o->waits; i; i = VF_WAITER(v, i)->object_next) {
		const struct vf_object *mutex = vf_mutex_of(v, VF_WAITER(v, i));

		if (!mutex || mutex->holds || mutex->flags & VF_MISUSED || !mutex->releaser)
			return INT64_MAX;
		if (since < mutex->release_ns)
			since = mutex->release_ns;
	}
	return since;
}

static void judge(struct ptt_verify *v, const struct vf_object *o)
{
	const struct vf_process *p = VF_PROCESS(v, o->process);
	int64_t since = mutexes_free(v, o), end = p->known.alive > p->last ? p->known.alive : p->last;
	const struct tk_waking *k = TK_WAKING(&v->t, o);
	const struct vf_wakeup *by = VF_WAKEUP(v, k->latest);
	const struct vf_waiter *w = NULL; /* the first waiter */
	struct ptt_verify_violation *row;
	uint32_t waiting = 0;
	bool proven;

	if (since < by->ts)
		since = by->ts;
	if (o->flags & PTT_OBJECT_SHARED) {
		v->skips[VF_SKIP_SHARED]++;
		return;
	}
	if (since == INT64_MAX || end - since < v->patience) {
		v->skips[VF_SKIP_LATE]++;
		return;
	}
	/* a process without later events may have been stopped; a condition with a static initializer may be shared */
	proven = o->flags & PTT_OBJECT_MADE && p->last - since >= v->patience;
	for (uint32_t i = o->waits; i; i = VF_WAITER(v, i)->object_next) {
		waiting++;
		w = VF_WAITER(v, i);
	}
	row = vf_report(v, &(struct vf_claim){
		.rule = VF_COND_WAKEUP, .severity = proven ? PTT_VERIFY_ERROR : PTT_VERIFY_WARNING,
		.process = o->process, .kind = o->kind, .object = o->address,
	}, VF_EVENTS(&w->in, &by->signal));
	if (row) {
		row->number[0] = k->pending;
		row->number[1] = waiting;
	}
}

void vf_conds_finish(struct ptt_verify *v)
{
	for (uint32_t i = 1; i < v->t.objects.count; i++) {
		const struct vf_object *o = VF_OBJECT(v, i);

		if (o->kind == PTT_KIND_COND && vf_is_there(v, o) &&
		    TK_WAKING(&v->t, o)->pending && o->waits && !VF_PROCESS(v, o->process)->known.incomplete)
			judge(v, o);
	}
}
