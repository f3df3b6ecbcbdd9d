/* SPDX-License-Identifier: MIT */
/* stuck.c - processes in which every thread is blocked for ever, and nothing is left that could let one go on. */
#include "../facts.h"

/* Of more threads than this the steps would say nothing new. */
#define THREADS_MAX 16u

static bool first_of_all(struct ptt_check *c, uint32_t thread, void *data)
{
	(void)c;
	*(uint32_t *)data = thread;
	return true;
}

/* Nobody outside of the process, and no wake-up that is on its way, lets this wait end. */
static bool for_ever(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (w->timed || w->shared || o->flags & PTT_OBJECT_SHARED)
		return false;
	if (w->kind == NPTL_DOMAIN_COND)
		return !ck_pending(c, o) && !(CK_OBJECT(c, w->mutex)->flags & PTT_OBJECT_SHARED);
	return w->kind != PTT_KIND_FUTEX || !ck_pending(c, o);
}

/* What keeps a process has been reported already. */
static void find_explained(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->facts.count; i++) {
		const struct ptt_check_fact *f = CK_FACT(c, i);

		if (f->flags & (PTT_FLAG_DROPPED | PTT_FLAG_REFUSED | PTT_FLAG_SUSPECT))
			continue;
		if (f->kind == PTT_FACT_WAIT_CYCLE || f->kind == PTT_FACT_WAIT_FOR_SELF || f->kind == PTT_FACT_SIGNAL_MISSED ||
		    f->kind == PTT_FACT_BARRIER_INCOMPLETE || f->kind == PTT_FACT_END_WITH_HOLD || f->kind == PTT_FACT_COND_MUTEX_NOT_HELD ||
		    f->kind == PTT_FACT_COND_TWO_MUTEXES)
			CK_PROCESS(c, f->process)->explained = true;
	}
}

static void add_thread(struct ptt_check *c, uint32_t thread)
{
	const struct ck_thread *t = CK_THREAD(c, thread);
	uint32_t blocker = 0;

	for (uint32_t hold = t->holds; hold; hold = CK_HOLD(c, hold)->thread_next)
		if (CK_OBJECT(c, CK_HOLD(c, hold)->object)->waits)
			ck_step_hold(c, hold);
	ck_each_blocker(c, CK_WAITING(c, t->waits), true, first_of_all, &blocker);
	ck_step_wait(c, t->waits, blocker);
}

/* The threads of each process that are blocked for ever; 0 where one is not, or nothing was seen of its beginning. */
static void count_blocked(const struct ptt_check *c, uint32_t *blocked, uint32_t *last)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		uint32_t process = t->process;

		if (!t->waits || t->flags & PTT_THREAD_ENDED || blocked[process] == UINT32_MAX)
			continue;
		if (!CK_PROCESS(c, process)->hung || !CK_PROCESS(c, process)->first_thread ||
		    !for_ever(c, CK_WAITING(c, t->waits))) {
			blocked[process] = UINT32_MAX;
			continue;
		}
		blocked[process]++;
		if (!last[process] ||
		    CK_WAITING(c, t->waits)->id > CK_WAITING(c, CK_THREAD(c, last[process])->waits)->id)
			last[process] = i;
	}
}

static void report_blocked(struct ptt_check *c, uint32_t process, uint32_t blocked, uint32_t last)
{
	const struct ck_wait *w = CK_WAITING(c, CK_THREAD(c, last)->waits);
	struct tk_event at = { .ts = w->since, .site = w->site, .process = process, .thread = last };
	uint32_t added = 0;

	if (CK_PROCESS(c, process)->explained || !ck_found(c, PTT_FACT_ALL_BLOCKED, &at, process, 0, PTT_FLAG_WHOLE))
		return;
	CK_FACT(c, c->current)->value = blocked;
	add_thread(c, last);
	for (uint32_t i = CK_PROCESS(c, process)->threads; i && ++added < THREADS_MAX; i = CK_THREAD(c, i)->process_next) {
		const struct ck_thread *t = CK_THREAD(c, i);

		if (i != last && t->waits && !(t->flags & PTT_THREAD_ENDED))
			add_thread(c, i);
		else
			added--;
	}
}

void ck_stuck(struct ptt_check *c)
{
	uint32_t *blocked = calloc(c->t.process_count + 1, 2 * sizeof(*blocked));
	uint32_t *last = blocked + c->t.process_count;

	if (!blocked) {
		c->t.error = -ENOMEM;
		return;
	}
	count_blocked(c, blocked, last);
	find_explained(c);
	for (uint32_t i = 0; i < c->t.process_count; i++)
		if (blocked[i] && blocked[i] != UINT32_MAX)
			report_blocked(c, i, blocked[i], last[i]);
	free(blocked);
}
