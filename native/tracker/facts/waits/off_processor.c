/* SPDX-License-Identifier: MIT */
/* off_processor.c - holders that lose the processor, or sleep, while other threads wait for their locks. */
#include "../facts.h"

/* Number of the last holds of a thread that are examined. */
#define NEAR 8u


/*
 * Reports a lock that other threads waited for while its holder did not run
 *
 * @off: ns without running since the last event of the holder. @hold: 0 for a semaphore
 */
static void kept(struct ptt_check *c, const struct tk_event *e, enum ptt_fact_kind kind, uint32_t object, uint32_t hold, int64_t off)
{
	const struct ck_thread *t = CK_THREAD(c, e->thread);
	uint64_t site = hold ? CK_HOLD(c, hold)->site : CK_OBJECT(c, object)->release_site;
	uint32_t asked = ck_first_wait(c, object);
	struct tk_event at = *e;
	int64_t ns = off;

	if (!asked)
		return;
	if (e->ts - CK_WAITING(c, asked)->since < ns)
		ns = e->ts - CK_WAITING(c, asked)->since;
	if (ns < c->long_wait)
		return;
	at.site = site;
	if (!ck_fact_add_largest(c, kind, &at, (uint64_t)object << 16, site, ns))
		return;
	if (hold)
		ck_step_hold(c, hold);
	else
		ck_step_held(c, asked, e->thread);
	if (kind == PTT_FACT_HOLD_ASLEEP && t->call) {
		struct ptt_check_step *s = ck_step(c, PTT_STEP_SLEPT, e->thread, t->call_ns, t->call_site, 0);

		s->value = off;
		s->call = t->call;
	}
	ck_step_wait(c, asked, e->thread);
}

void ck_given_back(struct ptt_check *c, const struct tk_event *e, uint32_t object)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t wait = ck_first_wait(c, object);
	int64_t since = t->won.since, ns = t->nap_ns;

	if (t->won.object != object)
		return;
	t->won.object = 0;
	if (!wait)
		return;
	if (CK_WAITING(c, wait)->since > since)
		since = CK_WAITING(c, wait)->since;
	if (t->nap_ts - since < ns)
		ns = t->nap_ts - since;
	if (ns < c->long_wait || !ck_fact_add_largest(c, PTT_FACT_HOLD_ASLEEP, e, (uint64_t)object << 16, e->site, ns))
		return;
	ck_step_now(c, PTT_STEP_RELEASED, e, object)->value = CK_WAITING(c, wait)->futex;
	ck_step_wait(c, wait, e->thread);
}

/* Reports all locks of a thread that did not run for @off ns, if other threads waited long for them. */
static void kept_all(struct ptt_check *c, const struct tk_event *e, enum ptt_fact_kind kind, int64_t off)
{
	const struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t hold = off >= c->long_wait ? t->holds : 0, sem = off >= c->long_wait && t->units ? t->unit : 0;

	for (uint32_t n = 0; hold && n < NEAR; n++, hold = CK_HOLD(c, hold)->thread_next)
		kept(c, e, kind, CK_HOLD(c, hold)->object, hold, off);
	/* the last semaphore of the thread, unless threads wait for work there */
	if (sem && !CK_OBJECT(c, sem)->work && CK_OBJECT(c, sem)->sem_hold == e->thread && ck_sem_proven(CK_OBJECT(c, sem)))
		kept(c, e, kind, sem, 0, off);
	/* a later wake-up shows whether the thread had a lock on a futex: see ck_given_back() */
	if (kind == PTT_FACT_HOLD_ASLEEP && off >= c->long_wait) {
		CK_THREAD(c, e->thread)->nap_ns = off;
		CK_THREAD(c, e->thread)->nap_ts = e->ts;
	}
}

void ck_sched(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct tk_sched_gap gap = tk_sched_read(&t->sched, e, t->last_ns);

	/* Time in a wait does not count. */
	if (t->waits)
		return;
	kept_all(c, e, PTT_FACT_HOLD_PREEMPTED, gap.ready_ns);
	/* Sleep in a system call is reported when the call returns. */
	if (!t->call)
		kept_all(c, e, PTT_FACT_HOLD_ASLEEP, gap.slept_ns);
}

void ck_sched_unknown(struct ptt_check *c, const struct tk_event *e)
{
	for (uint32_t i = CK_PROCESS(c, e->process)->threads; i; i = CK_THREAD(c, i)->process_next)
		tk_sched_lose(&CK_THREAD(c, i)->sched);
}

void ck_sleep_in(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);

	t->call = t->waits ? 0 : (uint32_t)tk_number(&e->e, TK_CALL, 0);
	t->called = tk_sched_mark(&t->sched, e->ts, t->last_ns);
	t->call_ns = e->ts;
	t->call_site = e->site;
}

/* Without readings of the scheduler, the thread slept during the whole call. */
void ck_sleep_out(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct tk_sched_sums spent = tk_sched_since(&t->sched, &t->called, e->ts, t->last_ns);

	if (t->call)
		kept_all(c, e, PTT_FACT_HOLD_ASLEEP, spent.off_ns < 0 ? e->ts - t->call_ns : spent.off_ns - spent.ready_most_ns);
	t->call = 0;
}
