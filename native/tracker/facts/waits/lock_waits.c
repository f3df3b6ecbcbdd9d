/* SPDX-License-Identifier: MIT */
/* lock_waits.c - waits for locks and semaphores, among them waits of a thread for itself and for a thread of lower priority. */
#include "../facts.h"

/* ---- locks ---- */

static bool has_lower_priority(struct ptt_check *c, uint32_t thread, void *data)
{
	struct ck_wait *w = data;

	if (CK_THREAD(c, thread)->priority >= CK_THREAD(c, w->thread)->priority)
		return false;
	w->inverter = thread;
	w->inverter_priority = (int32_t)CK_THREAD(c, thread)->priority;
	return true;
}

/* Whether a thread waits for a lock that it holds itself. */
static bool waits_for_itself(const struct ptt_check *c, const struct ck_wait *w)
{
	uint32_t hold = tk_hold_find(&c->t, w->thread, w->object);

	if (hold)
		return w->mode == PTT_MODE_EXCLUSIVE || CK_HOLD(c, hold)->mode == PTT_MODE_EXCLUSIVE;
	return !CK_OBJECT(c, w->object)->holds && w->owner == w->thread;
}

static void wait_for_self(struct ptt_check *c, const struct tk_event *e, uint32_t wait)
{
	const struct ck_wait *w = CK_WAITING(c, wait);

	if (!ck_fact_add(c, PTT_FACT_WAIT_FOR_SELF, e, rd_hash(w->id, 0), 1, PTT_FLAG_CLOSED))
		return;
	ck_step_hold(c, tk_hold_find(&c->t, w->thread, w->object));
	ck_step_wait(c, wait, w->thread);
}

/* Bits of the kind of a mutex in glibc: priority inheritance or a ceiling; use by several processes. */
#define MUTEX_PRIORITY 0x60
#define MUTEX_SHARED 0x80

void ck_lock_wait(struct ptt_check *c, const struct tk_event *e, uint32_t kind)
{
	uint32_t object = ck_use(c, e, kind), wait;
	bool read = kind == NPTL_DOMAIN_RWLOCK && !tk_number(&e->e, TK_WRITE, 1), inherits;
	int64_t owner = tk_number(&e->e, TK_OWNER, 0), bits;
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_wait *w;

	if (kind == NPTL_DOMAIN_SEM) {
		ck_sem_awaited(c, e, object);
		CK_THREAD(c, e->thread)->asked_sem = object;
	}
	wait = ck_wait_begin(c, e, object, read ? PTT_MODE_SHARED : PTT_MODE_EXCLUSIVE);
	w = CK_WAITING(c, wait);
	if (owner > 0)
		w->owner = tk_thread_of_tid(&c->t, e->process, (uint32_t)owner);
	ck_asked_for(c, w->owner);
	ck_asked_for(c, o->sem_hold);
	o->kept = 0;
	o->asked = e->ts;
	w->overtaken = o->overtaken;
	w->priority = (int32_t)CK_THREAD(c, e->thread)->priority;
	bits = kind == NPTL_DOMAIN_MUTEX ? tk_number(&e->e, TK_KIND, 0) : 0;
	w->shared = bits & MUTEX_SHARED;
	inherits = o->flags & CK_INHERITS || bits & MUTEX_PRIORITY;
	if (w->priority && !inherits)
		ck_each_blocker(c, w, false, has_lower_priority, w);
	if (kind != NPTL_DOMAIN_SEM && kind != NPTL_DOMAIN_ONCE && CK_THREAD(c, e->thread)->holds &&
	    !tk_hold_find(&c->t, e->thread, object))
		ck_ask(c, e, object, w->mode, w->timed);
	if (w->timed)
		return;
	if (w->mode == PTT_MODE_EXCLUSIVE)
		tk_order_write(&c->orders, e, object);
	if (kind != NPTL_DOMAIN_SEM && waits_for_itself(c, w))
		wait_for_self(c, e, wait);
	ck_deadlock(c, e->thread, e, false);
}

static void inversion(struct ptt_check *c, const struct tk_event *e, const struct ck_wait *w)
{
	struct tk_event at = *e;

	at.site = w->site;
	if (!ck_fact_add_largest(c, PTT_FACT_WAIT_FOR_LOWER, &at, (uint64_t)w->object << 16, w->site, e->ts - w->since))
		return;
	ck_step(c, PTT_STEP_PRIORITY, w->inverter, w->since, 0, 0)->value = w->inverter_priority;
	ck_step_hold(c, tk_hold_find(&c->t, w->inverter, w->object));
	ck_step(c, PTT_STEP_PRIORITY, w->thread, w->since, 0, 0)->value = w->priority;
	ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object)->other = w->inverter;
	ck_step_now(c, PTT_STEP_TOOK, e, w->object);
}

/* Minimum of readers that took the lock at once while a writer waited. */
#define OVERTAKEN 100u

static void overtaken(struct ptt_check *c, const struct ck_wait *w, int64_t until)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t count = o->overtaken - w->overtaken;
	struct tk_event at = { .ts = until, .site = w->site, .thread = w->thread, .process = CK_THREAD(c, w->thread)->process };

	if (count < OVERTAKEN || w->mode != PTT_MODE_EXCLUSIVE || until - w->since < c->long_wait)
		return;
	if (!ck_fact_add_largest(c, PTT_FACT_WRITER_OVERTAKEN, &at, (uint64_t)w->object << 16, w->site, count))
		return;
	ck_step(c, PTT_STEP_TOOK, o->overtaker.thread, o->overtaker.ts, o->overtaker.site, w->object)->value = PTT_MODE_SHARED;
	ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object);
}

void ck_still_waits(struct ptt_check *c, uint32_t thread)
{
	const struct ck_thread *t = CK_THREAD(c, thread);

	for (uint32_t wait = t->waits; wait; wait = CK_WAITING(c, wait)->thread_next)
		overtaken(c, CK_WAITING(c, wait), CK_PROCESS(c, t->process)->last);
}

void ck_lock_waited(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	uint32_t wait = tk_wait_of(&c->t, e->thread, object);
	const struct ck_wait *w = CK_WAITING(c, wait);

	if (!wait)
		return;
	tk_wait_end(&c->t, wait);
	overtaken(c, w, e->ts);
	if (w->inverter && e->ts - w->since >= c->long_wait && tk_number(&e->e, TK_RESULT, 0) == 0)
		inversion(c, e, w);
}

/* ---- semaphores used as locks ---- */

/*
 * A thread takes a semaphore. The order of such acquisitions is not kept: only the post shows whether the thread held the
 * semaphore alone.
 */
static void have_unit(struct ptt_check *c, const struct tk_event *e, const struct ck_object *o)
{
	if (!(o->flags & CK_AS_LOCK))
		return;
	CK_THREAD(c, e->thread)->unit = (uint32_t)(o - CK_OBJECT(c, 0));
	if (CK_THREAD(c, e->thread)->units++)
		CK_PROCESS(c, e->process)->nested++;
}

static void have_unit_no_more(struct ptt_check *c, const struct ck_object *o)
{
	struct ck_thread *t = CK_THREAD(c, o->sem_hold);

	if (o->flags & CK_AS_LOCK && o->sem_hold && t->units)
		t->units--;
}


void ck_sem_taken(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_SEM);
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);

	/* A new semaphore may have taken the place of the semaphore that the thread waited for. */
	if (tk_meanings[e->id].how == TK_WAITED) {
		uint32_t wait = tk_wait_at(&c->t, e);

		ck_waited_with_holds(c, e, wait);
		ck_lock_waited(c, e, CK_WAITING(c, wait)->object);
		tk_wake_use(&c->t, object, TK_NEVER);
	}
	t->asked_sem = object;
	if (o->extra)
		ck_extra_taken(c, e, o->extra);
	have_unit_no_more(c, o);
	if (o->sem_hold)
		ck_sem_no_lock(c, o);
	have_unit(c, e, o);
	if (o->pool) {
		t->pool_units = t->pool == object ? t->pool_units + 1 : 1;
		t->pool = object;
	}
	ck_sem_taken_by(c, object, e->thread);
	tk_order_unit(&c->orders, e->thread, object);
	if (o->waiters)
		ck_asked_for(c, e->thread);
	tk_released(&c->t, object, e); /* the releaser of a semaphore is its last taker */
}

void ck_sem_post(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_SEM);
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);

	if (o->extra)
		ck_extra_posted(c, e, o->extra);
	else
		ck_extra_begin(c, e, object);
	have_unit_no_more(c, o);
	if (o->sem_hold == e->thread)
		o->flags |= CK_GIVEN_BACK;
	else
		ck_sem_no_lock(c, o);
	/* A thread that posts without having a unit shows that the semaphore is no pool. */
	if (o->pool && t->pool == object && t->pool_units)
		t->pool_units--;
	else
		o->pool = 0;
	o->sem_hold = 0;
	tk_order_unit_back(&c->orders, e->thread, object);
	tk_wake(&c->t, e, object, 1, PTT_WAKE_POST);
}
