/* SPDX-License-Identifier: MIT */
/* contention.c - contended locks: kept during waits, handed from waiter to waiter, tried again and again. */
#include <threads.h>

#include "../facts.h"

/* ---- locks that a thread keeps while it waits for something else ---- */

/* Number of the last holds of a thread, and of the latest waits for each, that are examined. */
#define NEAR 8u

uint32_t ck_first_wait(const struct ptt_check *c, uint32_t object)
{
	uint32_t wait = CK_OBJECT(c, object)->waits;

	for (uint32_t n = 1; n < NEAR && wait && CK_WAITING(c, wait)->object_next; n++)
		wait = CK_WAITING(c, wait)->object_next;
	return wait;
}

static void waited_with(struct ptt_check *c, const struct tk_event *e, uint32_t wait, uint32_t hold)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	uint32_t object = CK_HOLD(c, hold)->object, asked = ck_first_wait(c, object);
	struct tk_event at = *e;
	int64_t since;

	if (!asked)
		return;
	since = CK_WAITING(c, asked)->since > w->since ? CK_WAITING(c, asked)->since : w->since;
	if (e->ts - since < c->long_wait)
		return;
	at.site = w->site;
	if (!ck_fact_add_largest(c, PTT_FACT_WAIT_WITH_HOLD, &at, (uint64_t)object << 16, w->site, e->ts - since))
		return;
	ck_step_hold(c, hold);
	ck_step_wait(c, wait, 0);
	ck_step_wait(c, asked, e->thread);
}

void ck_waited_with_holds(struct ptt_check *c, const struct tk_event *e, uint32_t wait)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	uint32_t hold = CK_THREAD(c, e->thread)->holds;

	/* A semaphore used as a lock is a lock. */
	if (!wait || CK_OBJECT(c, w->object)->flags & CK_AS_LOCK)
		return;
	/* The mutex of a condition wait was taken during the wait, unless the thread had taken it more than once before. */
	for (uint32_t n = 0; hold && n < NEAR; n++, hold = CK_HOLD(c, hold)->thread_next)
		if (CK_HOLD(c, hold)->since <= w->since)
			waited_with(c, e, wait, hold);
}

/* ---- convoys: locks that go from one sleeping thread to the next ---- */

/* Minimum of acquisitions in a row, by threads that waited, while other threads wait. */
#define PASSES 100u

static void report_convoy(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	const struct ck_object *o = CK_OBJECT(c, object);
	int64_t lasted = o->release_ns - o->convoy_ns;
	struct tk_event at = *e;

	/* In a convoy, the lock is free for longer than it is held: the wake-up takes longer than the work under the lock. */
	if (o->passes < PASSES || o->convoy_free * 2 < lasted)
		return;
	at.site = o->release_site;
	if (!ck_fact_add_largest(c, PTT_FACT_CONVOY, &at, (uint64_t)object << 16, 0, lasted))
		return;
	ck_step(c, PTT_STEP_PASSED, o->releaser, o->release_ns, o->release_site, object)->value = o->passes;
	ck_step_now(c, PTT_STEP_FREE, e, object)->value = o->convoy_free;
}

void ck_pass(struct ptt_check *c, const struct tk_event *e, uint32_t object, enum tk_how how)
{
	struct ck_object *o = CK_OBJECT(c, object);
	bool all_seen = TK_PROCESS(&c->t, e->process)->full[o->kind];

	if (how == TK_WAITED && all_seen && o->waiters && o->releaser && (!o->passes || o->release_ns >= o->convoy_ns)) {
		if (!o->passes) {
			o->convoy_ns = o->release_ns;
			o->convoy_free = 0;
		}
		o->passes++;
		o->convoy_free += e->ts - o->release_ns;
		return;
	}
	report_convoy(c, e, object);
	o->passes = 0;
}

/* ---- threads that only try to take a lock, again and again ---- */

/* Minimum of refused tries in a row, and maximum of the average time between two tries. */
#define TRIES 1000u
#define PAUSE_NS 200000

void ck_tries_report(struct ptt_check *c, uint32_t thread)
{
	struct ck_tries *r = &CK_THREAD(c, thread)->tries;
	struct tk_event at = { .ts = r->last, .site = r->site, .thread = thread, .process = CK_THREAD(c, thread)->process };
	uint32_t count = r->count;

	r->count = 0;
	if (count < TRIES || !r->holder.thread || r->last - r->since < c->long_wait ||
	    r->last - r->since > (int64_t)count * PAUSE_NS)
		return;
	if (!ck_fact_add_largest(c, PTT_FACT_TRIES_REFUSED, &at, (uint64_t)r->object << 16, r->site, count))
		return;
	ck_step_last(c, PTT_STEP_TOOK, &r->holder, r->object);
	ck_step(c, PTT_STEP_TRIED, thread, r->since, r->site, r->object)->value = count;
}

void ck_tries_end(struct ptt_check *c, const struct tk_event *e, enum tk_action action)
{
	struct ck_tries *r = &CK_THREAD(c, e->thread)->tries;
	bool same = CK_OBJECT(c, r->object)->address == (e->object & PTT_OBJECT_MASK);

	if (same && (action == TK_TRY_IN || action == TK_TRY_OUT))
		return;
	/* A thread that waits, or takes the lock, after some tries behaves like an adaptive lock. */
	if (same && tk_meanings[e->id].how != TK_TRIED)
		r->count = 0;
	else
		ck_tries_report(c, e->thread);
}

void ck_try_out(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t domain = e->id >> 6, kind = domain == NPTL_DOMAIN_C11 ? NPTL_DOMAIN_MUTEX : domain, object, hold;
	struct ck_tries *r = &CK_THREAD(c, e->thread)->tries;

	if (kind != NPTL_DOMAIN_MUTEX && kind != NPTL_DOMAIN_RWLOCK && kind != NPTL_DOMAIN_SPIN)
		return;
	if (tk_number(&e->e, TK_RESULT, 0) != (domain == NPTL_DOMAIN_C11 ? thrd_busy : EBUSY))
		return;
	object = ck_object(c, e, kind, e->object);
	hold = CK_OBJECT(c, object)->holds;
	if (r->count && (r->object != object || r->site != e->site))
		ck_tries_report(c, e->thread);
	/* The thread holds the lock itself: this is not contention. */
	if (hold && CK_HOLD(c, hold)->thread == e->thread) {
		r->count = 0;
		return;
	}
	if (!r->count++)
		*r = (struct ck_tries){ .object = object, .count = 1, .since = e->ts, .site = e->site };
	r->last = e->ts;
	if (hold)
		r->holder = (struct ck_last){
			.ts = CK_HOLD(c, hold)->since, .site = CK_HOLD(c, hold)->site, .thread = CK_HOLD(c, hold)->thread,
		};
}
