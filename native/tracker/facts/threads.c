/* SPDX-License-Identifier: MIT */
/* threads.c - life of threads: which one a number, kernel id or pthread_t means, and who never joins them. */
#include "facts.h"

void ck_create(struct ptt_check *c, const struct tk_event *e)
{
	uint32_t thread = tk_create(&c->t, e), node = ck_publish(c, e->thread);
	struct ck_thread *t = CK_THREAD(c, thread);

	if (!(t->flags & PTT_THREAD_BEGUN))
		t->base = node;
	t->created = ck_now(e);
}

void ck_begin(struct ptt_check *c, const struct tk_event *e)
{
	struct ck_thread *t = CK_THREAD(c, e->thread);
	int64_t creator = tk_number(&e->e, TK_CREATOR, 0);
	uint32_t by = creator > 0 ? tk_thread_of_tid(&c->t, e->process, (uint32_t)creator) : 0;

	t->flags |= CK_WHOLE;
	/* Its creator has not come to say so yet, and so has done nothing else. */
	if (!t->created.thread && by != e->thread) {
		t->base = ck_publish(c, by);
		t->created = (struct ck_last){ .ts = e->ts, .thread = by };
	}
}

void ck_fork(struct ptt_check *c, const struct tk_event *e)
{
	int64_t child = tk_number(&e->e, TK_CHILD, 0);
	uint32_t number = child > 0 ? tk_number_of_tid(&c->t, UINT32_MAX, (uint32_t)child) : 0;

	if (number)
		CK_PROCESS(c, c->t.known[number - 1].process)->forked = ck_now(e);
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
	ck_deadlock(c, e->thread, e, false);
}

static void refused_join(struct ptt_check *c, const struct tk_event *e, uint32_t target)
{
	bool self = target == e->thread || CK_THREAD(c, e->thread)->pthread == e->object;
	uint32_t wait = CK_THREAD(c, target)->waits;

	if (!ck_found(c, self ? PTT_FACT_WAIT_FOR_SELF : PTT_FACT_WAIT_CYCLE, e, e->object, e->site, PTT_FLAG_REFUSED))
		return;
	if (!self && wait)
		ck_step_wait(c, wait, e->thread);
	ck_step_now(c, PTT_STEP_REFUSED, e, 0)->value = EDEADLK;
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
	if (result || !target)
		return;
	CK_THREAD(c, target)->flags |= PTT_THREAD_JOINED;
	t->base = ck_joined_node(c, ck_publish(c, e->thread), ck_publish(c, target));
}

/* ---- threads that nobody joins ---- */

void ck_leaks(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		struct tk_event at = {
			.ts = t->end_ns, .site = t->created.site, .thread = i, .process = t->process,
		};

		/* Its creator says whether it was detached from the beginning. */
		if (!(t->flags & PTT_THREAD_ENDED) ||
		    t->flags & (PTT_THREAD_JOINED | PTT_THREAD_DETACHED | PTT_THREAD_GONE) || !t->created.site ||
		    !CK_PROCESS(c, t->process)->exited)
			continue;
		if (!ck_found(c, PTT_FACT_END_UNJOINED, &at, (uint64_t)i << 16, 0, PTT_FLAG_WHOLE))
			continue;
		ck_step(c, PTT_STEP_CREATED, t->created.thread, t->created.ts, t->created.site, 0)->other = i;
		ck_step(c, PTT_STEP_ENDED, i, t->end_ns, 0, 0);
	}
}
