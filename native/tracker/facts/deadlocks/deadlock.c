/* SPDX-License-Identifier: MIT */
/* deadlock.c - the threads that a wait is for, cycles of waits, and locks of processes and threads that are gone. */
#include "../facts.h"

/* ---- blockers ---- */

/* The thread that a lock named as its owner when a wait began, if the trace has no release that tells otherwise; else 0. */
static uint32_t named_owner(const struct ck_object *o, const struct ck_wait *w)
{
	return o->releaser || (o->let_go.thread && o->let_go.ts >= w->since) ? 0 : w->owner;
}

static bool each_holder(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	for (uint32_t hold = CK_OBJECT(c, w->object)->holds; hold; hold = CK_HOLD(c, hold)->object_next) {
		/* Readers do not keep a reader out. */
		if (w->mode == PTT_MODE_SHARED && CK_HOLD(c, hold)->mode == PTT_MODE_SHARED)
			continue;
		/* A reader that wants to write waits for the other readers. */
		if (CK_HOLD(c, hold)->thread == w->thread && CK_HOLD(c, hold)->mode == PTT_MODE_SHARED)
			continue;
		if (visit(c, CK_HOLD(c, hold)->thread, data))
			return true;
	}
	return false;
}

/* A reader waits although readers hold the lock: it waits for writers that came before it. */
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
 * The threads that could complete a barrier, but wait for something else, in a hung process. Nothing shows that they would have
 * come to the barrier. But nothing else could have let its waiters continue.
 */
static bool each_latecomer(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);

	if (!o->arrived || o->arrived >= o->barrier_count || !CK_PROCESS(c, o->process)->hung || ck_is_woken(c, w))
		return false;
	for (uint32_t i = CK_PROCESS(c, o->process)->late; i; i = CK_THREAD(c, i)->late_next)
		if (visit(c, i, data))
			return true;
	return false;
}

/*
 * The thread that took a semaphore is supposed to give it back. If the waiter itself took it last, this proves nothing: another
 * thread may be supposed to post it. So the waiter counts only for a proven lock, or if the process is hung.
 */
static bool each_taker(struct ptt_check *c, const struct ck_wait *w, bool at_end, ck_visit_fn *visit, void *data)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t holder = ck_sem_holder(c, o);

	if (!holder)
		return false;
	if (holder == w->thread && !ck_sem_proven(o) && !(at_end && CK_PROCESS(c, o->process)->hung))
		return false;
	return visit(c, holder, data);
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
		/* The trace lacks the acquisition: the lock itself named its owner. */
		return named_owner(o, w) && visit(c, w->owner, data);
	case NPTL_DOMAIN_SEM:
		return each_taker(c, w, at_end, visit, data);
	case PTT_KIND_THREAD:
		return w->owner && !(CK_THREAD(c, w->owner)->flags & PTT_THREAD_ENDED) && visit(c, w->owner, data);
	case NPTL_DOMAIN_BARRIER:
		return at_end && each_latecomer(c, w, visit, data);
	case NPTL_DOMAIN_COND:
		if (w->asks_again)
			return o->gil.thread != w->thread && visit(c, o->gil.thread, data);
		if (!at_end || !ck_is_woken(c, w) || w->retaken || !w->mutex)
			return false;
		for (uint32_t hold = CK_OBJECT(c, w->mutex)->holds; hold; hold = CK_HOLD(c, hold)->object_next)
			if (CK_HOLD(c, hold)->thread != w->thread && visit(c, CK_HOLD(c, hold)->thread, data))
				return true;
	}
	return false;
}

int ptt_check_has_limited_waits(const struct ptt_check *c, uint32_t process)
{
	if (process >= c->t.process_count || CK_PROCESS(c, process)->exited)
		return 0;
	for (uint32_t i = CK_PROCESS(c, process)->threads; i; i = CK_THREAD(c, i)->process_next)
		for (uint32_t wait = CK_THREAD(c, i)->waits; wait; wait = CK_WAITING(c, wait)->thread_next)
			if (CK_WAITING(c, wait)->kind == NPTL_DOMAIN_COND && CK_WAITING(c, wait)->timed)
				return 1;
	return 0;
}

int ptt_check_gil(struct ptt_check *c, uint32_t process, uint64_t condition, uint64_t hand_over)
{
	uint32_t object = tk_known_object(&c->t, process, NPTL_DOMAIN_COND, condition);
	uint32_t other = tk_known_object(&c->t, process, NPTL_DOMAIN_COND, hand_over);
	const struct ck_wakeup *given_up, *taken;

	if (!object || !other)
		return 0;
	given_up = ck_woke(c, CK_OBJECT(c, object));
	taken = ck_woke(c, CK_OBJECT(c, other));
	/* The taker of the lock signals the second condition. The thread that gives up the lock signals the first. */
	if (!taken->thread || (given_up->thread && given_up->ts >= taken->ts))
		return 0;
	CK_OBJECT(c, object)->gil = (struct ck_last){ .ts = taken->ts, .site = taken->site, .thread = taken->thread };
	for (uint32_t wait = CK_OBJECT(c, object)->waits; wait; wait = CK_WAITING(c, wait)->object_next)
		CK_WAITING(c, wait)->asks_again = true;
	return 0;
}

/* ---- cycles ---- */

/* Maximum of nested waits with several blockers where the search tries all blockers. */
#define FORKS_MAX 1024u


struct walk {
	uint32_t start;
	uint32_t depth; /* links */
	uint32_t forks;
	bool at_end;
	bool open; /* the walk met a wait that may lead into a cycle, so the waits before it are not clear */
};

static bool walk_on(struct ptt_check *c, uint32_t thread, void *data);


/* The threads that a wait is for: none, one, or several. */
struct few {
	uint32_t count;
	uint32_t first;
};

static bool count_few(struct ptt_check *c, uint32_t thread, void *data)
{
	struct few *few = data;

	(void)c;
	if (few->count && few->first == thread)
		return false;
	few->first = few->count ? few->first : thread;
	return ++few->count == 2;
}

/* Adds the wait of a thread to the way. False: the way ends here. @closed: the way is back at its start */
static bool enter(struct ptt_check *c, struct walk *walk, uint32_t thread, bool *closed)
{
	struct ck_thread *t = CK_THREAD(c, thread);

	CK_LINK(c, walk->depth)->thread = thread;
	*closed = thread == walk->start;
	if (*closed || !t->waits || ck_limited(CK_WAITING(c, t->waits)) || t->flags & CK_CLEAR)
		return false;
	if (t->mark == c->mark) {
		walk->open = true;
		return false;
	}
	t->mark = c->mark;
	if (walk->depth + 1 >= c->links.count && !ck_new(c, &c->links))
		return false;
	CK_LINK(c, ++walk->depth)->wait = t->waits;
	return true;
}

/* Goes back to a number of links. The waits of the removed links lead into no cycle, unless the walk is open. */
static void leave(struct ptt_check *c, struct walk *walk, uint32_t links)
{
	for (; walk->depth > links; walk->depth--)
		if (walk->at_end && !walk->open)
			CK_THREAD(c, CK_WAITING(c, CK_LINK(c, walk->depth)->wait)->thread)->flags |= CK_CLEAR;
}

/*
 * Continues the walk from the last link of the way, and removes that link unless the way is closed. Most waits are for a single
 * thread. This function calls itself only at waits for several threads.
 */
static bool walk_from(struct ptt_check *c, struct walk *walk)
{
	uint32_t links = walk->depth - 1;
	bool open = walk->open, closed = false;

	walk->open = false;
	for (;;) {
		const struct ck_wait *w = CK_WAITING(c, CK_LINK(c, walk->depth)->wait);
		struct few few = { 0 };

		ck_each_blocker(c, w, walk->at_end, count_few, &few);
		if (few.count == 1 && enter(c, walk, few.first, &closed))
			continue;
		if (few.count == 2 && walk->forks < FORKS_MAX) {
			walk->forks++;
			closed = ck_each_blocker(c, w, walk->at_end, walk_on, walk);
			walk->forks--;
		} else if (few.count == 2) {
			walk->open = true;
		}
		break;
	}
	if (closed)
		return true;
	leave(c, walk, links);
	walk->open |= open;
	return false;
}

static bool walk_on(struct ptt_check *c, uint32_t thread, void *data)
{
	struct walk *walk = data;
	bool closed;

	return enter(c, walk, thread, &closed) ? walk_from(c, walk) : closed;
}

static void report_cycle(struct ptt_check *c, const struct tk_event *e, const struct walk *walk)
{
	uint64_t sum = 0, last = 0;
	struct tk_event at = *e;

	for (uint32_t i = 1; i <= walk->depth; i++) {
		const struct ck_wait *w = CK_WAITING(c, CK_LINK(c, i)->wait);

		sum += rd_hash(w->id, 0);
		if (w->id > last) {
			last = w->id;
			at.ts = w->since;
			at.site = w->site;
			at.process = CK_THREAD(c, w->thread)->process;
		}
	}
	if (!ck_fact_add(c, walk->depth > 1 ? PTT_FACT_WAIT_CYCLE : PTT_FACT_WAIT_FOR_SELF, &at, sum, walk->depth, PTT_FLAG_CLOSED))
		return;
	/* For each thread: the lock that the thread before it waits for, and its own wait. */
	for (uint32_t i = 1; i <= walk->depth; i++) {
		uint32_t wait = CK_LINK(c, i)->wait, before = CK_LINK(c, i > 1 ? i - 1 : walk->depth)->wait;

		ck_step_held(c, before, CK_WAITING(c, wait)->thread);
		ck_step_wait(c, wait, CK_LINK(c, i)->thread);
	}
}

/* Number of the last holds of a thread that are examined. */
#define NEAR 16u

/* Whether another thread may wait for this waiting thread. Otherwise no cycle leads through it. */
static bool may_be_awaited(const struct ptt_check *c, uint32_t thread, bool at_end)
{
	const struct ck_thread *t = CK_THREAD(c, thread);
	const struct ck_wait *w = CK_WAITING(c, t->waits);
	uint32_t hold = t->holds;

	if (t->flags & CK_ASKED_FOR || w->thread_next)
		return true;
	if (at_end && (CK_OBJECT(c, w->object)->flags & CK_READERS_WAIT || CK_PROCESS(c, t->process)->meets))
		return true;
	for (uint32_t n = 0; hold && n < NEAR; n++, hold = CK_HOLD(c, hold)->thread_next) {
		const struct ck_object *o = CK_OBJECT(c, CK_HOLD(c, hold)->object);

		if (o->waiters || o->flags & CK_WANTED_BACK)
			return true;
	}
	return hold;
}

void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e, bool at_end)
{
	struct walk walk = { .start = thread, .depth = 1, .at_end = at_end };
	uint32_t wait = CK_THREAD(c, thread)->waits;

	if (!wait || ck_limited(CK_WAITING(c, wait)) || CK_THREAD(c, thread)->flags & CK_CLEAR ||
	    !may_be_awaited(c, thread, at_end))
		return;
	if (c->links.count < 2 && !ck_new(c, &c->links))
		return;
	c->mark++;
	CK_LINK(c, 1)->wait = wait;
	if (!walk_from(c, &walk))
		return;
	report_cycle(c, e, &walk);
	for (uint32_t i = 1; at_end && i <= walk.depth; i++)
		CK_THREAD(c, CK_WAITING(c, CK_LINK(c, i)->wait)->thread)->flags |= CK_IN_CYCLE;
}


/* Marks objects and processes with waits that are for a thread only because no more events follow. */
static void find_late_waits(struct ptt_check *c)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		uint32_t wait = CK_THREAD(c, i)->waits;
		const struct ck_wait *w = CK_WAITING(c, wait);

		if (!wait)
			continue;
		if (w->kind == NPTL_DOMAIN_RWLOCK && w->mode == PTT_MODE_SHARED)
			CK_OBJECT(c, w->object)->flags |= CK_READERS_WAIT;
		else if (w->kind == NPTL_DOMAIN_COND)
			CK_OBJECT(c, w->mutex)->flags |= CK_WANTED_BACK;
		else if (w->kind == NPTL_DOMAIN_BARRIER)
			CK_PROCESS(c, CK_OBJECT(c, w->object)->process)->meets = true;
	}
}

void ck_last_deadlocks(struct ptt_check *c, const struct tk_event *e)
{
	find_late_waits(c);
	/* A thread of a known cycle starts no other cycle. */
	for (uint32_t i = 1; i < c->t.threads.count; i++)
		if (!(CK_THREAD(c, i)->flags & CK_IN_CYCLE))
			ck_deadlock(c, i, e, true);
}

/* ---- locks of threads that a fork left behind ---- */

/* The thread of the parent that has the unit of a copied semaphore, if no thread of the child can give it back; else 0. */
static uint32_t unit_left_behind(struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object), *theirs = CK_OBJECT(c, o->copied);
	const struct ck_process *p = CK_PROCESS(c, CK_THREAD(c, w->thread)->process);
	bool proven;

	if (!o->copied || w->timed || w->shared || o->flags & PTT_OBJECT_SHARED)
		return 0;
	if (o->init.thread || o->releaser || ck_woke(c, o)->thread || !ck_sem_is_lock(c, theirs))
		return 0;
	/* A post after the last action of the forking thread: another thread may have had the unit at the fork. */
	if (o->free_before > p->before_fork)
		return 0;
	proven = o->flags & CK_GIVEN_BACK;
	/* If the forking thread has the unit, this proves nothing by itself: a signal handler may be supposed to post it. */
	if (o->kept_by.thread == p->forked.thread)
		return proven && p->hung ? o->kept_by.thread : 0;
	return proven || p->hung ? o->kept_by.thread : 0;
}

/* Whether a wait is for a lock that the fork copied while another thread of the parent held it. No thread of the child held it. */
static bool left_behind(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t process = CK_THREAD(c, w->thread)->process, forker = CK_PROCESS(c, process)->forked.thread;

	if ((w->kind != NPTL_DOMAIN_MUTEX && w->kind != NPTL_DOMAIN_RWLOCK) || w->timed || w->shared || !named_owner(o, w))
		return false;
	if (o->flags & PTT_OBJECT_SHARED || o->process != process || o->init.thread || o->holds)
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
		uint32_t owner;

		if (!wait || !forked->thread)
			continue;
		owner = w->kind == NPTL_DOMAIN_SEM ? unit_left_behind(c, w) : left_behind(c, w) ? w->owner : 0;
		if (!owner)
			continue;
		at.process = CK_THREAD(c, i)->process;
		if (!ck_fact_add(c, PTT_FACT_WAIT_CYCLE, &at, rd_hash(w->id, 0), 0, PTT_FLAG_CLOSED))
			continue;
		if (w->kind == NPTL_DOMAIN_SEM)
			ck_step_last(c, PTT_STEP_TOOK, &CK_OBJECT(c, w->object)->kept_by, CK_OBJECT(c, w->object)->copied);
		ck_step(c, PTT_STEP_FORKED, forked->thread, forked->ts, forked->site, 0)->other = owner;
		ck_step_wait(c, wait, owner);
	}
}

/* ---- locks of processes that have ended ---- */

#define PAGE 4096u

/* The latest time of the end of a process: a thread had waited for it, or the recorder saw it; TK_NEVER: it goes on. */
static int64_t end_of(struct ptt_check *c, uint32_t process, const int64_t *ends, uint32_t count)
{
	const struct ck_last *known = &CK_PROCESS(c, process)->end_known;
	int64_t seen = process < count ? ends[process] : TK_NEVER;

	return known->thread && (seen == TK_NEVER || known->ts < seen) ? known->ts : seen;
}

/* Whether the process of a thread had ended before a wait of another process began. */
static bool had_ended(struct ptt_check *c, uint32_t thread, const struct ck_wait *w, const int64_t *ends, uint32_t count)
{
	uint32_t process = CK_THREAD(c, thread)->process;
	int64_t end = end_of(c, process, ends, count);

	return process != CK_THREAD(c, w->thread)->process && end != TK_NEVER && end < w->since;
}

/*
 * The owner's hold of the mutex of a wait, by its address; 0: unknown. A mutex for several processes may be mapped at another
 * address, with the same offset in its page.
 */
static uint32_t hold_of_owner(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t candidate = 0, several = 0;

	for (uint32_t hold = CK_THREAD(c, w->owner)->holds; hold; hold = CK_HOLD(c, hold)->thread_next) {
		uint64_t apart = CK_HOLD(c, hold)->address ^ o->address;

		if (CK_HOLD(c, hold)->kind != w->kind || apart % PAGE)
			continue;
		if (!apart)
			return hold;
		candidate = hold;
		several++;
	}
	return several == 1 && (w->shared || o->flags & PTT_OBJECT_SHARED) ? candidate : 0;
}

/* A hold that blocks a wait, by a thread of another process that had ended when the wait began; 0: none. */
static uint32_t abandoned(struct ptt_check *c, const struct ck_wait *w, const int64_t *ends, uint32_t count)
{
	bool rwlock = w->kind == NPTL_DOMAIN_RWLOCK;

	if ((w->kind != NPTL_DOMAIN_MUTEX && !rwlock) || w->timed)
		return 0;
	for (uint32_t hold = CK_OBJECT(c, w->object)->holds; hold; hold = CK_HOLD(c, hold)->object_next) {
		const struct tk_hold *h = CK_HOLD(c, hold);

		if (rwlock && h->mode == PTT_MODE_SHARED && w->mode == PTT_MODE_SHARED)
			continue;
		if (had_ended(c, h->thread, w, ends, count))
			return hold;
	}
	/* If nothing shows that the processes share the memory, the lock itself has named its holder. */
	return w->owner && had_ended(c, w->owner, w, ends, count) ? hold_of_owner(c, w) : 0;
}

/* ---- semaphores of processes that have ended ---- */

/* Whether no thread of the traced processes is left that could post the semaphore of a wait. */
static bool nobody_posts(struct ptt_check *c, const struct ck_wait *w, const int64_t *ends, uint32_t count)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		const struct ck_thread *t = CK_THREAD(c, i);
		const struct ck_wait *other = CK_WAITING(c, t->waits);

		if (t->flags & PTT_THREAD_ENDED || (t->first_ns == INT64_MAX && !t->created.thread))
			continue;
		if (had_ended(c, i, w, ends, count) || (t->waits && other->object == w->object && !other->timed))
			continue;
		if (!ck_blocked(c, i))
			return false;
	}
	return true;
}

/*
 * Whether the last taker of the unit of a semaphore ended without giving it back. Another process may be supposed to post the
 * semaphore, unless earlier takers gave the unit back themselves, or no other thread is left.
 */
static bool is_unit_lost(struct ptt_check *c, const struct ck_wait *w, const int64_t *ends, uint32_t count)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	const struct ck_thread *taker = CK_THREAD(c, o->sem_hold);

	if (w->kind != NPTL_DOMAIN_SEM || w->timed || o->releaser != o->sem_hold || !ck_sem_unit_of(c, o))
		return false;
	if (had_ended(c, o->sem_hold, w, ends, count))
		return ck_sem_proven(o) || nobody_posts(c, w, ends, count);
	return taker->flags & PTT_THREAD_ENDED && taker->end_ns < w->since && ck_sem_proven(o) && nobody_posts(c, w, ends, count);
}

static void lost_unit(struct ptt_check *c, uint32_t wait, const int64_t *ends, uint32_t count)
{
	const struct ck_wait *w = CK_WAITING(c, wait);
	const struct ck_object *o = CK_OBJECT(c, w->object);
	const struct ck_thread *taker = CK_THREAD(c, o->sem_hold);
	struct tk_event at = { .site = o->release_site, .thread = o->sem_hold, .process = taker->process };

	if (!is_unit_lost(c, w, ends, count))
		return;
	at.ts = taker->flags & PTT_THREAD_ENDED ? taker->end_ns : end_of(c, at.process, ends, count);
	if (!ck_fact_add(c, PTT_FACT_END_WITH_HOLD, &at, (uint64_t)w->object << 16, at.site, PTT_FLAG_WHOLE))
		return;
	ck_step_held(c, wait, at.thread);
	ck_step(c, PTT_STEP_ENDED, at.thread, at.ts, 0, 0);
	ck_step_wait(c, wait, at.thread);
}

/* Robust mutexes need no exception: the kernel wakes their waiters at once. */
void ck_abandoned_locks(struct ptt_check *c, const int64_t *ends, uint32_t count)
{
	for (uint32_t i = 1; i < c->t.threads.count; i++) {
		uint32_t wait = CK_THREAD(c, i)->waits, hold = wait ? abandoned(c, CK_WAITING(c, wait), ends, count) : 0;
		const struct tk_hold *h = CK_HOLD(c, hold);
		struct tk_event at = { .site = h->site, .thread = h->thread };

		if (wait)
			lost_unit(c, wait, ends, count);
		if (!hold)
			continue;
		at.process = CK_THREAD(c, h->thread)->process;
		at.ts = end_of(c, at.process, ends, count);
		if (!ck_fact_add(c, PTT_FACT_END_WITH_HOLD, &at, (uint64_t)h->object << 16, h->site, PTT_FLAG_WHOLE))
			continue;
		ck_step_hold(c, hold);
		ck_step(c, PTT_STEP_ENDED, at.thread, at.ts, 0, 0);
		ck_step_wait(c, wait, at.thread);
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
	case PTT_KIND_FUTEX:
		return !w->shared && !(o->flags & PTT_OBJECT_SHARED) && !ck_is_woken(c, w);
	case NPTL_DOMAIN_SEM:
		return CK_PROCESS(c, CK_THREAD(c, thread)->process)->no_handlers && (o->flags & PTT_OBJECT_MADE || o->parks) &&
		       !o->opens && !(o->flags & PTT_OBJECT_SHARED) && !ck_pending(c, o);
	case PTT_KIND_THREAD:
		return ck_joined_before(c, w) || ck_each_blocker(c, w, true, anybody, NULL);
	default:
		return ck_each_blocker(c, w, true, anybody, NULL);
	}
}
