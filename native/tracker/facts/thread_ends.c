/* SPDX-License-Identifier: MIT */
/* thread_ends.c - creation, fork, join and end of threads, and threads without a join. */
#include "facts.h"

void ck_create(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t thread = tk_create(&c->t, e), node = tk_publish(&c->orders, e->thread);
	struct ck_thread *t = CK_THREAD(c, thread);

	if (!(t->flags & PTT_THREAD_BEGUN))
		t->order.base = node;
	t->created = ck_now(e);
}

void ck_begin(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	int64_t creator = tk_number(&e->e, TK_CREATOR, 0);
	uint32_t by = creator > 0 ? tk_thread_of_tid(&c->t, e->process, (uint32_t)creator) : 0;

	t->flags |= CK_WHOLE;
	/* The event of the creator comes later, so the creator has done nothing else yet. */
	if (!t->created.thread && by != e->thread) {
		t->order.base = tk_publish(&c->orders, by);
		t->created = (struct ck_last){ .ts = e->ts, .thread = by };
	}
}

/* The new child of a process: the first process with this id that has no fork yet; NULL: unknown. */
static struct ck_process *child_of(struct ptt_check *c, uint32_t parent, uint32_t pid)
{
	uint32_t number = tk_number_of_any_tid(&c->t, pid), process = UINT32_MAX;

	if (number != TK_SEVERAL)
		return number ? CK_PROCESS(c, c->t.known[number - 1].process) : NULL;
	for (uint32_t i = 0; i < c->t.known_count; i++) {
		const struct tk_known *known = &c->t.known[i];

		if (known->known && known->tid == pid && known->process < process &&
		    TK_PROCESS(&c->t, known->process)->parent == parent + 1 && !CK_PROCESS(c, known->process)->forked.thread)
			process = known->process;
	}
	return process == UINT32_MAX ? NULL : CK_PROCESS(c, process);
}

void ck_fork(struct ptt_check *c, const struct tk_event *e)
{
	int64_t pid = tk_number(&e->e, TK_CHILD, 0);
	struct ck_process *child = pid > 0 ? child_of(c, e->process, (uint32_t)pid) : NULL;

	if (child) {
		child->forked = ck_now(e);
		child->before_fork = CK_THREAD(c, e->thread)->busy_ts;
		ck_sem_forked(c, e, (uint32_t)(child - CK_PROCESS(c, 0)));
	}
	CK_THREAD(c, e->thread)->busy_ts = e->ts;
}

/* If several processes have had the id, the event does not say which process has ended. */
void ck_reaped(struct ptt_check *c, const struct tk_event *e)
{
	int64_t pid = tk_number(&e->e, TK_CHILD, 0);
	uint32_t number = pid > 0 ? tk_number_of_any_tid(&c->t, (uint32_t)pid) : 0;
	struct ck_process *p;

	if (!number || number == TK_SEVERAL)
		return;
	p = CK_PROCESS(c, c->t.known[number - 1].process);
	p->end_known = ck_now(e);
	p->reaped = true;
	p->reaped_ns = e->ts;
}

void ck_end(struct ptt_check *c, const struct tk_event *e)
{
	ck_exit_holding(c, e);
	tk_end(&c->t, e);
	while (CK_THREAD(c, e->thread)->waits)
		tk_wait_end(&c->t, CK_THREAD(c, e->thread)->waits);
}

void ck_priority(struct ptt_check *c, const struct tk_event *e)
{
	int64_t priority = tk_number(&e->e, TK_PRIORITY, 0);

	CK_THREAD(c, tk_scheduled(&c->t, e))->priority = priority > 0 ? (uint32_t)priority : 0;
}

/* ---- joins ---- */

void ck_join_in(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_object(c, e, PTT_KIND_THREAD, e->object);
	uint32_t wait = ck_wait_begin(c, e, object, PTT_MODE_EXCLUSIVE);

	CK_WAITING(c, wait)->timed = e->id != (PTT_KIND_THREAD << 6 | NPTL_EV_THREAD_JOIN_IN);
	CK_WAITING(c, wait)->owner = tk_join_target(&c->t, e, 0);
	/* a thread that was joined already: see ck_joined_before() */
	if (!CK_WAITING(c, wait)->owner)
		CK_WAITING(c, wait)->owner = tk_thread_named(&c->t, e);
	ck_asked_for(c, CK_WAITING(c, wait)->owner);
	ck_deadlock(c, e->thread, e, false);
}

static void refused_join(struct ptt_check *c, const struct tk_event *e, uint32_t target)
{
	bool self = target == e->thread || CK_THREAD(c, e->thread)->pthread == e->object;
	uint32_t wait = CK_THREAD(c, target)->waits;

	if (!ck_fact_add(c, self ? PTT_FACT_WAIT_FOR_SELF : PTT_FACT_WAIT_CYCLE, e, e->object, e->site, PTT_FLAG_REFUSED))
		return;
	if (!self && wait)
		ck_step_wait(c, wait, e->thread);
	ck_step_now(c, PTT_STEP_REFUSED, e, 0)->value = EDEADLK;
}

/* The library refuses to join a detached thread, or a thread that another thread joins. */
static void join_of_others(struct ptt_check *c, const struct tk_event *e, uint32_t target)
{
	const struct ck_thread *t = CK_THREAD(c, target);

	if (!ck_fact_add(c, PTT_FACT_JOIN_REFUSED, e, e->object, e->site, PTT_FLAG_REFUSED))
		return;
	ck_step_last(c, PTT_STEP_CREATED, &t->created, 0);
	if (t->created.thread)
		CK_STEP(c, c->steps.count - 1)->other = target;
	ck_step_now(c, PTT_STEP_REFUSED, e, 0)->value = tk_number(&e->e, TK_RESULT, 0);
	CK_STEP(c, c->steps.count - 1)->other = target;
}

void ck_join_out(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t object = ck_object(c, e, PTT_KIND_THREAD, e->object), target;
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	uint32_t wait = tk_wait_of(&c->t, e->thread, object);

	ck_waited_with_holds(c, e, tk_wait_at(&c->t, e));
	target = tk_join_target(&c->t, e, CK_WAITING(c, wait)->owner);
	if (wait)
		tk_wait_end(&c->t, wait);
	if (result == EDEADLK)
		refused_join(c, e, target);
	else if (result == EINVAL && e->id == (PTT_KIND_THREAD << 6 | NPTL_EV_THREAD_JOIN_OUT))
		join_of_others(c, e, target ? target : CK_WAITING(c, wait)->owner);
	if (result || !target)
		return;
	CK_THREAD(c, target)->flags |= PTT_THREAD_JOINED;
	t->order.base = tk_joined_node(&c->orders, tk_publish(&c->orders, e->thread), tk_publish(&c->orders, target));
}

/* ---- threads without a join ---- */

void ck_leaks(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		struct tk_event at = {
			.ts = t->end_ns, .site = t->created.site, .thread = i, .process = t->process,
		};

		/* Without the event of the creator, it may have been detached from the beginning. */
		if (!(t->flags & PTT_THREAD_ENDED) ||
		    t->flags & (PTT_THREAD_JOINED | PTT_THREAD_DETACHED | PTT_THREAD_GONE | CK_AWAITED) || !t->created.site ||
		    !CK_PROCESS(c, t->process)->exited)
			continue;
		if (!ck_fact_add(c, PTT_FACT_END_UNJOINED, &at, (uint64_t)i << 16, 0, PTT_FLAG_WHOLE))
			continue;
		ck_step(c, PTT_STEP_CREATED, t->created.thread, t->created.ts, t->created.site, 0)->other = i;
		ck_step(c, PTT_STEP_ENDED, i, t->end_ns, 0, 0);
	}
}
