/* SPDX-License-Identifier: MIT */
/* waits.c - who waits for what since when, and for whom: deadlocks, priority inversion. */
#include "internal.h"

/* ---- beginnings and ends ---- */

uint32_t ck_wait_begin(struct ptt_check *c, const struct ck_event *e, uint32_t object, uint8_t mode)
{
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_thread *t = CK_THREAD(c, e->thread);
	struct ck_wait gone, *w;
	uint32_t number;

	/* The end of an earlier one was lost. */
	ck_wait_end(c, e->thread, object, &gone);
	number = c->free_wait;
	if (number)
		c->free_wait = CK_WAITING(c, number)->thread_next;
	else
		number = ck_new(c, &c->waits);
	w = CK_WAITING(c, number);
	*w = (struct ck_wait){
		.since = e->ts, .site = e->site, .id = ++c->wait_id, .address = e->object & PTT_OBJECT_MASK,
		.thread = e->thread, .object = object,
		.thread_next = t->waits, .object_next = o->waits, .kind = (uint8_t)o->kind, .mode = mode,
		.timed = ck_number(c, e, CK_TIMED, 0) != 0,
	};
	if (o->waits)
		CK_WAITING(c, o->waits)->object_prev = number;
	t->waits = o->waits = number;
	o->waiters++;
	return number;
}

static uint32_t wait_of(const struct ptt_check *c, uint32_t thread, uint32_t object)
{
	uint32_t wait = CK_THREAD(c, thread)->waits;

	while (wait && CK_WAITING(c, wait)->object != object)
		wait = CK_WAITING(c, wait)->thread_next;
	return wait;
}

uint32_t ck_wait_at(const struct ptt_check *c, const struct ck_event *e)
{
	uint32_t wait = CK_THREAD(c, e->thread)->waits;

	while (wait && (CK_WAITING(c, wait)->kind != e->id >> 6 ||
			CK_WAITING(c, wait)->address != (e->object & PTT_OBJECT_MASK)))
		wait = CK_WAITING(c, wait)->thread_next;
	return wait;
}

bool ck_wait_end(struct ptt_check *c, uint32_t thread, uint32_t object, struct ck_wait *out)
{
	uint32_t number = wait_of(c, thread, object), *at = &CK_THREAD(c, thread)->waits;
	struct ck_object *o = CK_OBJECT(c, object);
	struct ck_wait *w = CK_WAITING(c, number);

	if (!number)
		return false;
	*out = *w;
	while (*at != number)
		at = &CK_WAITING(c, *at)->thread_next;
	*at = w->thread_next;
	if (w->object_prev)
		CK_WAITING(c, w->object_prev)->object_next = w->object_next;
	else
		o->waits = w->object_next;
	if (w->object_next)
		CK_WAITING(c, w->object_next)->object_prev = w->object_prev;
	o->waiters--;
	w->thread_next = c->free_wait;
	c->free_wait = number;
	return true;
}

/* ---- for whom ---- */

/* Calls back with each thread that a wait is for, until one call says true. */
typedef bool visit_fn(struct ptt_check *c, uint32_t thread, void *data);

static bool each_holder(struct ptt_check *c, const struct ck_wait *w, visit_fn *visit, void *data)
{
	for (uint32_t hold = CK_OBJECT(c, w->object)->holds; hold; hold = CK_HOLD(c, hold)->object_next) {
		/* Readers do not keep a reader out. */
		if (w->mode == CK_SHARED && CK_HOLD(c, hold)->mode == CK_SHARED)
			continue;
		if (visit(c, CK_HOLD(c, hold)->thread, data))
			return true;
	}
	return false;
}

/* A reader that readers do not keep out waits for a writer that came before it. */
static bool each_writer(struct ptt_check *c, const struct ck_wait *w, visit_fn *visit, void *data)
{
	for (uint32_t wait = CK_OBJECT(c, w->object)->waits; wait; wait = CK_WAITING(c, wait)->object_next) {
		const struct ck_wait *other = CK_WAITING(c, wait);

		if (other->mode == CK_EXCLUSIVE && !other->timed && other->id < w->id && visit(c, other->thread, data))
			return true;
	}
	return false;
}

/*
 * Whoever could complete a barrier and is kept from it by a lock, in a process in which nobody else will come. It is not
 * known whether it would have come there, but nothing else would have let the others go on.
 */
static bool each_latecomer(struct ptt_check *c, const struct ck_wait *w, visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (!o->arrived || o->arrived >= o->barrier_count || !c->processes[o->process].hung || w->met)
		return false;
	for (uint32_t i = 1; i < c->threads.count; i++) {
		uint32_t wait = CK_THREAD(c, i)->waits;

		if (wait && CK_THREAD(c, i)->pub.process == o->process && CK_WAITING(c, wait)->kind != w->kind &&
		    CK_WAITING(c, wait)->kind != NPTL_DOMAIN_THREAD && visit(c, i, data))
			return true;
	}
	return false;
}

static bool each_blocker(struct ptt_check *c, const struct ck_wait *w, bool at_end, visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	switch (w->kind) {
	case NPTL_DOMAIN_MUTEX:
	case NPTL_DOMAIN_SPIN:
	case NPTL_DOMAIN_ONCE:
	case NPTL_DOMAIN_RWLOCK:
		if (o->holds && !(w->mode == CK_SHARED && CK_HOLD(c, o->holds)->mode == CK_SHARED))
			return each_holder(c, w, visit, data);
		if (o->holds)
			return each_writer(c, w, visit, data);
		/* Not seen being taken: what the lock itself said. */
		return w->owner && !o->released.thread && visit(c, w->owner, data);
	case NPTL_DOMAIN_SEM:
		return o->flags & CK_AS_LOCK && o->sem_hold && visit(c, o->sem_hold, data);
	case NPTL_DOMAIN_THREAD:
		return w->owner && !(CK_THREAD(c, w->owner)->flags & CK_ENDED_THREAD) && visit(c, w->owner, data);
	case NPTL_DOMAIN_BARRIER:
		return at_end && each_latecomer(c, w, visit, data);
	case NPTL_DOMAIN_COND:
		if (!at_end || !w->woken || w->retaken || !w->mutex)
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
	if (each_blocker(c, CK_WAITING(c, wait), walk->at_end, walk_on, walk))
		return true;
	walk->depth--;
	return false;
}

/* The lock that keeps a wait of this object waiting, in the hand of a thread. */
static uint32_t blocking_hold(const struct ptt_check *c, const struct ck_wait *w, uint32_t thread)
{
	uint32_t object = w->kind == NPTL_DOMAIN_COND ? w->mutex : w->object;

	return ck_hold_of(c, thread, object);
}

static void tell_cycle(struct ptt_check *c, const struct ck_event *e, const struct walk *walk)
{
	uint64_t sum = 0, last = 0;
	struct ck_event at = *e;

	for (uint32_t i = 0; i < walk->depth; i++) {
		const struct ck_wait *w = CK_WAITING(c, walk->path[i]);

		sum += rd_hash(w->id, 0);
		if (w->id > last) {
			last = w->id;
			at.ts = w->since;
			at.site = w->site;
			at.process = CK_THREAD(c, w->thread)->pub.process;
		}
	}
	if (!ck_found(c, walk->depth > 1 ? PTT_DEADLOCK : PTT_SELF_DEADLOCK, &at, sum, walk->depth, PTT_FINDING_CLOSED))
		return;
	/* Each thread with what it has that the one before it wants. */
	for (uint32_t i = 0; i < walk->depth; i++) {
		uint32_t before = (i + walk->depth - 1) % walk->depth, wait = walk->path[i];
		const struct ck_wait *w = CK_WAITING(c, wait);

		ck_step_hold(c, blocking_hold(c, CK_WAITING(c, walk->path[before]), w->thread));
		ck_step_wait(c, wait, walk->after[i]);
	}
}

void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct ck_event *e, bool at_end)
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
	if (each_blocker(c, CK_WAITING(c, wait), at_end, walk_on, &walk))
		tell_cycle(c, e, &walk);
}

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
		if (o->flags & CK_SHARED_MEMORY)
			return false;
		return !w->woken || each_blocker(c, w, true, anybody, NULL);
	case NPTL_DOMAIN_BARRIER:
		return o->barrier_count && o->arrived < o->barrier_count;
	case NPTL_DOMAIN_SEM: /* a signal handler may post it */
		return false;
	default:
		return each_blocker(c, w, true, anybody, NULL);
	}
}

/* ---- locks ---- */

static bool one_that_is_lower(struct ptt_check *c, uint32_t thread, void *data)
{
	struct ck_wait *w = data;

	if (CK_THREAD(c, thread)->priority >= CK_THREAD(c, w->thread)->priority)
		return false;
	w->inverter = thread;
	w->inverter_priority = (int32_t)CK_THREAD(c, thread)->priority;
	return true;
}

/* Its own lock keeps it waiting, whatever others do. */
static bool waits_for_itself(const struct ptt_check *c, const struct ck_wait *w)
{
	uint32_t hold = ck_hold_of(c, w->thread, w->object);

	if (hold)
		return w->mode == CK_EXCLUSIVE || CK_HOLD(c, hold)->mode == CK_EXCLUSIVE;
	return !CK_OBJECT(c, w->object)->holds && w->owner == w->thread;
}

static void tell_self(struct ptt_check *c, const struct ck_event *e, uint32_t wait)
{
	const struct ck_wait *w = CK_WAITING(c, wait);

	if (!ck_found(c, PTT_SELF_DEADLOCK, e, rd_hash(w->id, 0), 1, PTT_FINDING_CLOSED))
		return;
	ck_step_hold(c, ck_hold_of(c, w->thread, w->object));
	ck_step_wait(c, wait, w->thread);
}

void ck_lock_wait(struct ptt_check *c, const struct ck_event *e, uint32_t kind)
{
	uint32_t object = ck_use(c, e, kind), wait;
	bool read = kind == NPTL_DOMAIN_RWLOCK && !ck_number(c, e, CK_WRITE, 1), inherits;
	int64_t owner = ck_number(c, e, CK_OWNER, 0);
	const struct ck_object *o = CK_OBJECT(c, object);
	struct ck_wait *w;

	wait = ck_wait_begin(c, e, object, read ? CK_SHARED : CK_EXCLUSIVE);
	w = CK_WAITING(c, wait);
	if (owner > 0)
		w->owner = ck_thread_of_tid(c, e->process, (uint32_t)owner);
	w->priority = (int32_t)CK_THREAD(c, e->thread)->priority;
	/* A mutex says of itself whether it lends its owner the priority of those who wait for it, as glibc keeps it. */
	inherits = o->flags & CK_INHERITS || (kind == NPTL_DOMAIN_MUTEX && ck_number(c, e, CK_KIND, 0) & 0x60);
	if (w->priority && !inherits)
		each_blocker(c, w, false, one_that_is_lower, w);
	if (w->timed)
		return;
	if (kind != NPTL_DOMAIN_SEM && kind != NPTL_DOMAIN_ONCE && CK_THREAD(c, e->thread)->holds &&
	    !ck_hold_of(c, e->thread, object))
		ck_ask(c, e, object, w->mode);
	if (kind != NPTL_DOMAIN_SEM && waits_for_itself(c, w))
		tell_self(c, e, wait);
	ck_deadlock(c, e->thread, e, false);
}

/* Waits shorter than this do no harm that anybody would notice. */
#define INVERSION_NS 1000000

static void inversion(struct ptt_check *c, const struct ck_event *e, const struct ck_wait *w)
{
	struct ck_event at = *e;

	at.site = w->site;
	if (!ck_found(c, PTT_PRIORITY_INVERSION, &at, (uint64_t)w->object << 16, w->site, PTT_FINDING_WHOLE))
		return;
	CK_FINDING(c, c->findings.count - 1)->value = e->ts - w->since;
	ck_step(c, PTT_STEP_PRIORITY, w->inverter, w->since, 0, 0)->value = w->inverter_priority;
	ck_step_hold(c, ck_hold_of(c, w->inverter, w->object));
	ck_step(c, PTT_STEP_PRIORITY, w->thread, w->since, 0, 0)->value = w->priority;
	ck_step(c, PTT_STEP_WAITS, w->thread, w->since, w->site, w->object)->other = w->inverter;
	ck_step_now(c, PTT_STEP_TOOK, e, w->object);
}

void ck_lock_waited(struct ptt_check *c, const struct ck_event *e, uint32_t object)
{
	struct ck_wait w;

	if (!ck_wait_end(c, e->thread, object, &w))
		return;
	if (w.inverter && e->ts - w.since >= INVERSION_NS && ck_number(c, e, CK_RESULT, 0) == 0)
		inversion(c, e, &w);
}

/* ---- semaphores that are used as locks ---- */

void ck_sem_taken(struct ptt_check *c, const struct ck_event *e, bool waited)
{
	uint32_t object = ck_use(c, e, NPTL_DOMAIN_SEM);
	struct ck_object *o = CK_OBJECT(c, object);

	if (waited)
		ck_lock_waited(c, e, object);
	if (o->sem_hold)
		o->flags &= ~CK_AS_LOCK;
	o->sem_hold = e->thread;
	o->released = ck_now(e); /* for a semaphore: who took it */
}

void ck_sem_post(struct ptt_check *c, const struct ck_event *e)
{
	struct ck_object *o = CK_OBJECT(c, ck_use(c, e, NPTL_DOMAIN_SEM));

	if (o->sem_hold != e->thread)
		o->flags &= ~CK_AS_LOCK;
	o->sem_hold = 0;
}
