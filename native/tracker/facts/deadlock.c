/* SPDX-License-Identifier: MIT */
/* deadlock.c - whom a wait is for, and waits in a circle. */
#include "facts.h"

/* ---- for whom ---- */

static bool each_holder(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	for (uint32_t hold = CK_OBJECT(c, w->object)->holds; hold; hold = CK_HOLD(c, hold)->object_next) {
		/* Readers do not keep a reader out. */
		if (w->mode == PTT_MODE_SHARED && CK_HOLD(c, hold)->mode == PTT_MODE_SHARED)
			continue;
		if (visit(c, CK_HOLD(c, hold)->thread, data))
			return true;
	}
	return false;
}

/* A reader that readers do not keep out waits for a writer that came before it. */
static bool each_writer(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	for (uint32_t wait = CK_OBJECT(c, w->object)->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		const struct ck_wait *other = CK_WAITING(c, wait);

		if (other->mode == PTT_MODE_EXCLUSIVE && !other->timed && other->id < w->id && visit(c, other->thread, data))
			return true;
	}
	return false;
}

/*
 * Whoever could complete a barrier and is kept from it by a lock, in a process in which nobody else will come. It is not
 * known whether it would have come there, but nothing else would have let the others go on.
 */
static bool each_latecomer(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (!o->arrived || o->arrived >= o->barrier_count || !CK_PROCESS(c, o->process)->hung || w->met)
		return false;
	for (uint32_t i = CK_PROCESS(c, o->process)->late; i; i = CK_THREAD(c, i)->late_next)
		if (visit(c, i, data))
			return true;
	return false;
}

bool ck_each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	switch (w->kind) {
	case NPTL_DOMAIN_MUTEX:
	case NPTL_DOMAIN_SPIN:
	case NPTL_DOMAIN_ONCE:
	case NPTL_DOMAIN_RWLOCK:
		if (o->holds && !(w->mode == PTT_MODE_SHARED && CK_HOLD(c, o->holds)->mode == PTT_MODE_SHARED))
			return each_holder(c, w, visit, data);
		if (o->holds)
			return each_writer(c, w, visit, data);
		/* Not seen being taken: what the lock itself said. */
		return w->owner && !o->released.thread && visit(c, w->owner, data);
	case NPTL_DOMAIN_SEM:
		return o->flags & CK_AS_LOCK && o->sem_hold && visit(c, o->sem_hold, data);
	case PTT_KIND_THREAD:
		return w->owner && !(CK_THREAD(c, w->owner)->flags & PTT_THREAD_ENDED) && visit(c, w->owner, data);
	case NPTL_DOMAIN_BARRIER:
		return at_end && each_latecomer(c, w, visit, data);
	case NPTL_DOMAIN_COND:
		if (!at_end || !ck_is_woken(c, w) || w->retaken || !w->mutex)
			return false;
		for (uint32_t hold = CK_OBJECT(c, w->mutex)->holds; hold; hold = CK_HOLD(c, hold)->object_next)
			if (CK_HOLD(c, hold)->thread != w->thread && visit(c, CK_HOLD(c, hold)->thread, data))
				return true;
	}
	return false;
}

/* ---- cycles ---- */

#define DEEPEST 4096u

struct walk {
	uint32_t start;
	uint32_t depth;
	bool at_end;
	uint32_t path[DEEPEST]; /* waits */
	uint32_t after[DEEPEST]; /* threads that they are for */
};

static bool walk_on(struct ptt_check *c, uint32_t thread, void *data)
{
	struct walk *walk = data;
	struct ck_thread *t = CK_THREAD(c, thread);
	uint32_t wait = t->waits;

	walk->after[walk->depth - 1] = thread;
	if (thread == walk->start)
		return true;
	if (t->mark == c->mark || !wait || CK_WAITING(c, wait)->timed || walk->depth == DEEPEST)
		return false;
	t->mark = c->mark;
	walk->path[walk->depth++] = wait;
	if (ck_each_blocker(c, CK_WAITING(c, wait), walk->at_end, walk_on, walk))
		return true;
	walk->depth--;
	return false;
}

/* The lock that keeps a wait of this object waiting, in the hand of a thread. */
static uint32_t blocking_hold(const struct ptt_check *c, const struct ck_wait *w, uint32_t thread)
{
	uint32_t object = w->kind == NPTL_DOMAIN_COND ? w->mutex : w->object;

	return tk_hold_find(&c->t, thread, object);
}

static void tell_cycle(struct ptt_check *c, const struct tk_event *e, const struct walk *walk)
{
	uint64_t sum = 0, last = 0;
	struct tk_event at = *e;

	for (uint32_t i = 0; i < walk->depth; i++) {
		const struct ck_wait *w = CK_WAITING(c, walk->path[i]);

		sum += rd_hash(w->id, 0);
		if (w->id > last) {
			last = w->id;
			at.ts = w->since;
			at.site = w->site;
			at.process = CK_THREAD(c, w->thread)->process;
		}
	}
	if (!ck_found(c, walk->depth > 1 ? PTT_FACT_WAIT_CYCLE : PTT_FACT_WAIT_FOR_SELF, &at, sum, walk->depth, PTT_FLAG_CLOSED))
		return;
	/* Each thread with what it has that the one before it wants. */
	for (uint32_t i = 0; i < walk->depth; i++) {
		uint32_t before = (i + walk->depth - 1) % walk->depth, wait = walk->path[i];
		const struct ck_wait *w = CK_WAITING(c, wait);

		ck_step_hold(c, blocking_hold(c, CK_WAITING(c, walk->path[before]), w->thread));
		ck_step_wait(c, wait, walk->after[i]);
	}
}

void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e, bool at_end)
{
	static _Thread_local struct walk walk;
	uint32_t wait = CK_THREAD(c, thread)->waits;

	if (!wait || CK_WAITING(c, wait)->timed)
		return;
	c->mark++;
	walk.start = thread;
	walk.at_end = at_end;
	walk.depth = 1;
	walk.path[0] = wait;
	if (ck_each_blocker(c, CK_WAITING(c, wait), at_end, walk_on, &walk))
		tell_cycle(c, e, &walk);
}

/* ---- locks of threads that a fork left behind ---- */

/* Nobody in the process has ever had it: that another thread of the parent has it is what the fork copied. */
static bool left_behind(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t process = CK_THREAD(c, w->thread)->process, forker = CK_PROCESS(c, process)->forked.thread;

	if ((w->kind != NPTL_DOMAIN_MUTEX && w->kind != NPTL_DOMAIN_RWLOCK) || w->timed || w->shared || !w->owner)
		return false;
	if (o->flags & PTT_OBJECT_SHARED || o->process != process || o->init.thread || o->released.thread || o->holds)
		return false;
	return forker && w->owner != forker && CK_THREAD(c, w->owner)->process == CK_THREAD(c, forker)->process;
}

void ck_forked_locks(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		uint32_t wait = CK_THREAD(c, i)->waits;
		const struct ck_wait *w = CK_WAITING(c, wait);
		const struct ck_last *forked = &CK_PROCESS(c, CK_THREAD(c, i)->process)->forked;
		struct tk_event at = { .ts = w->since, .site = w->site, .thread = i };

		if (!wait || !left_behind(c, w))
			continue;
		at.process = CK_THREAD(c, i)->process;
		if (!ck_found(c, PTT_FACT_WAIT_CYCLE, &at, rd_hash(w->id, 0), 0, PTT_FLAG_CLOSED))
			continue;
		ck_step(c, PTT_STEP_FORKED, forked->thread, forked->ts, forked->site, 0)->other = w->owner;
		ck_step_wait(c, wait, w->owner);
	}
}

/* ---- at the end ---- */

static bool anybody(struct ptt_check *c, uint32_t thread, void *data)
{
	(void)c;
	(void)thread;
	(void)data;
	return true;
}

bool ck_blocked(const struct ptt_check *check, uint32_t thread)
{
	struct ptt_check *c = (struct ptt_check *)(uintptr_t)check;
	uint32_t wait = CK_THREAD(c, thread)->waits;
	const struct ck_wait *w = CK_WAITING(c, wait);
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (!wait || w->timed)
		return false;
	switch (w->kind) {
	case NPTL_DOMAIN_COND:
		if (o->flags & PTT_OBJECT_SHARED)
			return false;
		return !ck_is_woken(c, w) || ck_each_blocker(c, w, true, anybody, NULL);
	case NPTL_DOMAIN_BARRIER:
		return o->barrier_count && o->arrived < o->barrier_count;
	case NPTL_DOMAIN_SEM: /* a signal handler may post it */
		return false;
	default:
		return ck_each_blocker(c, w, true, anybody, NULL);
	}
}
