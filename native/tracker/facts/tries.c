/* SPDX-License-Identifier: MIT */
/* tries.c - threads that try to take one lock again and again, and do nothing else. */
#include <threads.h>

#include "facts.h"

/* So many refused tries in a row at least, with so little time between them on average. */
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
	if (!ck_found_more(c, PTT_FACT_TRIES_REFUSED, &at, (uint64_t)r->object << 16, r->site, count))
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
	/* It tried for a while before it waits, as adaptive locks do. */
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
	/* It refuses the lock to itself: that is another matter. */
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
