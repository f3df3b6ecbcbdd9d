/* SPDX-License-Identifier: MIT */
/* lock_misuse.c - acquisitions and releases of locks: long holds, and releases by threads that do not hold the lock. */
#include "facts.h"

/* ---- taking ---- */


void ck_acquire(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint8_t mode, enum tk_how how)
{
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t number = o->holds ? tk_hold_find(&c->t, e->thread, object) : 0;

	if (number) {
		CK_HOLD(c, number)->depth++;
		return;
	}
	if (unlikely(!tk_knows_holds(TK_PROCESS(&c->t, e->process), o->kind, e->object)))
		return;
	/* Other threads hold it as far as it is known: these holds must have ended. */
	if (unlikely(o->holds && (mode == PTT_MODE_EXCLUSIVE || CK_HOLD(c, o->holds)->mode == PTT_MODE_EXCLUSIVE))) {
		if (tk_number(&e->e, TK_RESULT, 0) != EOWNERDEAD)
			o->flags |= CK_DOUBT;
		ck_drop_holds(c, object);
	}
	o->kept = 0;
	if (unlikely(o->waiters) && mode == PTT_MODE_SHARED && how != TK_WAITED) {
		o->overtaken++;
		o->overtaker = ck_now(e);
	}
	if (t->holds && how != TK_WAITED && o->kind != PTT_KIND_ONCE)
		ck_ask(c, e, object, mode, how == TK_TRIED);
	if (mode == PTT_MODE_EXCLUSIVE && how == TK_PLAIN)
		tk_order_write(&c->orders, e, object);
	t->locked = true;
	if (unlikely(t->waits) && CK_WAITING(c, t->waits)->mutex == object) {
		CK_WAITING(c, t->waits)->retaken = true;
	} else {
		o->taken_before = o->taken;
		o->taken = e->ts;
	}
	ck_hold_begin(c, e, object, mode);
}

/* ---- releasing ---- */

static void long_hold(struct ptt_check *c, const struct tk_event *e, uint32_t hold)
{
	const struct tk_hold *h = CK_HOLD(c, hold);
	const struct ck_object *o = CK_OBJECT(c, h->object);
	struct tk_event at = *e;

	/* No thread had to wait. */
	if (!o->waiters && o->asked < h->since)
		return;
	at.site = h->site; /* the line to change */
	if (!ck_fact_add_largest(c, PTT_FACT_LONG_HOLD, &at, (uint64_t)h->object << 16, h->site, e->ts - h->since))
		return;
	ck_step_hold(c, hold);
	ck_step_now(c, PTT_STEP_RELEASED, e, h->object);
}

/* Reports the release of a lock of another thread, or of a free lock. @flags: of the fact */
static void release_of_other(struct ptt_check *c, const struct tk_event *e, uint32_t object, uint32_t flags)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	uint32_t hold = o->holds;

	if (!ck_fact_add(c, hold ? PTT_FACT_RELEASE_OF_OTHERS : PTT_FACT_RELEASE_OF_FREE, e, (uint64_t)object << 16, e->site, flags))
		return;
	if (hold)
		ck_step_hold(c, hold);
	else
		ck_step_released(c, object);
	ck_step_now(c, flags & PTT_FLAG_REFUSED ? PTT_STEP_REFUSED : PTT_STEP_UNLOCKS, e, object)->value =
		tk_number(&e->e, TK_RESULT, 0);
}

static void release_unheld(struct ptt_check *c, const struct tk_event *e, uint32_t kind)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	bool for_wait = kind == NPTL_DOMAIN_MUTEX && t->cond_mutex == e->object;
	uint32_t object = ck_use(c, e, kind);
	struct ck_object *o = CK_OBJECT(c, object);

	if (kind == NPTL_DOMAIN_ONCE)
		return;
	if (t->flags & CK_WHOLE && !(o->flags & CK_DOUBT) && !tk_is_numbered(e->object)) {
		if (for_wait)
			ck_cond_unlocked(c, e, object, PTT_FLAG_WHOLE);
		else
			release_of_other(c, e, object, PTT_FLAG_WHOLE);
	}
	/* The lock is free now. Later releases by its former holders are no misuse. */
	o->flags |= CK_DOUBT;
	ck_drop_holds(c, object);
	tk_released(&c->t, object, e);
}

void ck_release(struct ptt_check *c, const struct tk_event *e, uint32_t kind)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t hold = tk_hold_released(&c->t, e);
	struct ck_object *o;

	if (unlikely(!hold)) {
		release_unheld(c, e, kind);
		t->cond_mutex = 0;
		return;
	}
	t->cond_mutex = 0;
	o = CK_OBJECT(c, CK_HOLD(c, hold)->object);
	if (o->releaser != e->thread && o->releaser)
		o->flags |= CK_OF_SEVERAL;
	tk_released(&c->t, CK_HOLD(c, hold)->object, e);
	if (--CK_HOLD(c, hold)->depth)
		return;
	if (unlikely(e->ts - CK_HOLD(c, hold)->since >= c->long_hold) && kind != NPTL_DOMAIN_ONCE)
		long_hold(c, e, hold);
	ck_hold_end(c, hold);
}

void ck_release_awaited(struct ptt_check *c, const struct tk_event *e)
{
	CK_OBJECT(c, ck_object(c, e, e->id >> 6, e->object))->let_go = ck_now(e);
}

/* ---- refusals by the library ---- */

static bool is_lock_routine(uint32_t kind, int64_t routine)
{
	if (kind == NPTL_DOMAIN_MUTEX)
		return routine == NPTL_EV_MUTEX_LOCK_IN || routine == NPTL_EV_MUTEX_TIMEDLOCK_IN ||
		       routine == NPTL_EV_MUTEX_CLOCKLOCK_IN;
	return routine == NPTL_EV_RWLOCK_RDLOCK_IN || routine == NPTL_EV_RWLOCK_WRLOCK_IN ||
	       routine == NPTL_EV_RWLOCK_TIMEDRDLOCK_IN || routine == NPTL_EV_RWLOCK_TIMEDWRLOCK_IN ||
	       routine == NPTL_EV_RWLOCK_CLOCKRDLOCK_IN || routine == NPTL_EV_RWLOCK_CLOCKWRLOCK_IN;
}

static void refused_again(struct ptt_check *c, const struct tk_event *e, uint32_t object, int64_t result)
{
	if (!ck_fact_add(c, PTT_FACT_WAIT_FOR_SELF, e, (uint64_t)object << 16, e->site, PTT_FLAG_REFUSED))
		return;
	ck_step_hold(c, tk_hold_find(&c->t, e->thread, object));
	ck_step_now(c, PTT_STEP_REFUSED, e, object)->value = result;
}

static void refused_destroy(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);

	if (!ck_fact_add(c, PTT_FACT_DESTROY_IN_USE, e, (uint64_t)object << 16, e->site, PTT_FLAG_REFUSED))
		return;
	for (uint32_t hold = o->holds; hold; hold = CK_HOLD(c, hold)->object_next)
		ck_step_hold(c, hold);
	ck_step_now(c, PTT_STEP_REFUSED, e, object)->value = EBUSY;
}

void ck_lock_error(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t kind = e->id >> 6, object = ck_object(c, e, kind, e->object);
	struct ck_object *o = CK_OBJECT(c, object);
	int64_t routine = tk_number(&e->e, TK_ROUTINE, 0), result = tk_number(&e->e, TK_RESULT, 0);
	bool mutex = kind == NPTL_DOMAIN_MUTEX;
	bool unlock = routine == (mutex ? NPTL_EV_MUTEX_UNLOCK_IN : NPTL_EV_RWLOCK_UNLOCK_IN);

	if (!mutex && kind != PTT_KIND_RWLOCK)
		return;
	o->kept = 0;
	if (o->flags & PTT_OBJECT_ENDED) {
		if (mutex && (result == EINVAL || result == EPERM))
			ck_use_destroyed(c, e, object);
		return;
	}
	/* The functions of C11 return thrd_error for all errors; the trace has EINVAL. */
	if (is_lock_routine(kind, routine) &&
	    (result == EDEADLK || (result == EINVAL && tk_hold_find(&c->t, e->thread, object))))
		refused_again(c, e, object, result);
	else if (unlock && (result == EPERM || result == EINVAL) && !tk_hold_find(&c->t, e->thread, object) &&
		 CK_THREAD(c, e->thread)->flags & CK_WHOLE && !(o->flags & CK_DOUBT))
		release_of_other(c, e, object, PTT_FLAG_WHOLE | PTT_FLAG_REFUSED);
	else if (mutex && routine == NPTL_EV_MUTEX_DESTROY_IN && result == EBUSY)
		refused_destroy(c, e, object);
}

/* ---- the end of a thread ---- */

/* A detached thread may keep a lock so that no other thread continues while the process ends. */
void ck_kept_locks(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.objects.count; i++) {
		struct ptt_check_fact *f = CK_FACT(c, CK_OBJECT(c, i)->kept);

		if (CK_OBJECT(c, i)->kept && CK_PROCESS(c, f->process)->exited &&
		    CK_THREAD(c, CK_STEP(c, f->first_step)->thread)->flags & (PTT_THREAD_DETACHED | PTT_THREAD_GONE))
			f->flags |= PTT_FLAG_DROPPED;
	}
}


void ck_exit_holding(struct ptt_check *c, const struct tk_event *e)
{
	for (uint32_t hold = CK_THREAD(c, e->thread)->holds; hold; hold = CK_HOLD(c, hold)->thread_next) {
		const struct tk_hold *h = CK_HOLD(c, hold);
		struct ck_object *o = CK_OBJECT(c, h->object);
		struct tk_event at = *e;
		uint32_t fact;

		/* The next thread that takes a robust mutex gets EOWNERDEAD. */
		if (o->flags & CK_ROBUST || h->kind == NPTL_DOMAIN_ONCE)
			continue;
		at.site = h->site;
		fact = ck_fact_add(c, PTT_FACT_END_WITH_HOLD, &at, (uint64_t)h->object << 16, h->site, PTT_FLAG_WHOLE);
		if (!fact)
			continue;
		/* The lock matters only if other threads have used it. */
		o->kept = o->flags & CK_OF_SEVERAL || (o->releaser && o->releaser != h->thread) ? fact : 0;
		ck_step_hold(c, hold);
		ck_step(c, PTT_STEP_ENDED, e->thread, e->ts, 0, 0);
	}
}
