/* SPDX-License-Identifier: MIT */
/* deadlock.c - whom a wait is for, and waits in a circle. */
#include "../facts.h"

/* ---- for whom ---- */

static bool each_holder(struct ptt_check *c, const struct ck_wait *w, ck_visit_fn *visit, void *data)
{
	for (uint32_t hold = CK_OBJECT(c, w->object)->holds; hold; hold = CK_HOLD(c, hold)->object_next) {
		/* Readers do not keep a reader out. */
		if (w->mode == PTT_MODE_SHARED && CK_HOLD(c, hold)->mode == PTT_MODE_SHARED)
			continue;
		/* Of a reader that wants to write, the other readers are the news. */
		if (CK_HOLD(c, hold)->thread == w->thread && CK_HOLD(c, hold)->mode == PTT_MODE_SHARED)
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

	if (!o->arrived || o->arrived >= o->barrier_count || !CK_PROCESS(c, o->process)->hung || ck_is_woken(c, w))
		return false;
	for (uint32_t i = CK_PROCESS(c, o->process)->late; i; i = CK_THREAD(c, i)->late_next)
		if (visit(c, i, data))
			return true;
	return false;
}

/*
 * Who took a semaphore is to give it back. That the thread that waits took it last proves nothing: another one may be to post it.
 * So it is said only of what has been used as a lock, and where nobody else is left.
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
		/* Not seen being taken: what the lock itself said. */
		return w->owner && !o->releaser && visit(c, w->owner, data);
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
	/* Whoever takes it signals the second condition, and whoever gives it up the first. */
	if (!taken->thread || (given_up->thread && given_up->ts >= taken->ts))
		return 0;
	CK_OBJECT(c, object)->gil = (struct ck_last){ .ts = taken->ts, .site = taken->site, .thread = taken->thread };
	for (uint32_t wait = CK_OBJECT(c, object)->waits; wait; wait = CK_WAITING(c, wait)->object_next)
		CK_WAITING(c, wait)->asks_again = true;
	return 0;
}

/* ---- cycles ---- */

/* Of so many waits that are for several threads each, one behind the other, all ways are tried. */
#define FORKS_MAX 1024u

/* A wait on the way, and the thread that it is for. */
struct link {
	uint32_t wait;
	uint32_t thread;
};

struct walk {
	uint32_t start;
	uint32_t depth; /* links */
	uint32_t forks;
	bool at_end;
	bool open; /* something was met that may lead into a cycle: what led to it is not clear */
};

static bool walk_on(struct ptt_check *c, uint32_t thread, void *data);

int ck_deadlock_open(struct ptt_check *c)
{
	return rd_pool_open(&c->links, sizeof(struct link));
}

static struct link *link_at(const struct ptt_check *c, uint32_t i)
{
	return &((struct link *)(void *)c->links.items)[i];
}

/* The threads that a wait is for, as far as it matters whether they are several. */
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

/* Puts the wait of a thread on the way. False: the way leads no further; it is back at the start where @closed. */
static bool enter(struct ptt_check *c, struct walk *walk, uint32_t thread, bool *closed)
{
	struct ck_thread *t = CK_THREAD(c, thread);

	link_at(c, walk->depth)->thread = thread;
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
	link_at(c, ++walk->depth)->wait = t->waits;
	return true;
}

/* Goes back to where the way had so many links. What lay behind leads into no cycle unless something is open. */
static void leave(struct ptt_check *c, struct walk *walk, uint32_t links)
{
	for (; walk->depth > links; walk->depth--)
		if (walk->at_end && !walk->open)
			CK_THREAD(c, CK_WAITING(c, link_at(c, walk->depth)->wait)->thread)->flags |= CK_CLEAR;
}

/*
 * Walks on from the last link of the way, which is taken off it again unless the way is closed. Most waits are for one
 * thread: only where they are for several does this call itself.
 */
static bool walk_from(struct ptt_check *c, struct walk *walk)
{
	uint32_t links = walk->depth - 1;
	bool open = walk->open, closed = false;

	walk->open = false;
	for (;;) {
		const struct ck_wait *w = CK_WAITING(c, link_at(c, walk->depth)->wait);
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

static void tell_cycle(struct ptt_check *c, const struct tk_event *e, const struct walk *walk)
{
	uint64_t sum = 0, last = 0;
	struct tk_event at = *e;

	for (uint32_t i = 1; i <= walk->depth; i++) {
		const struct ck_wait *w = CK_WAITING(c, link_at(c, i)->wait);

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
	for (uint32_t i = 1; i <= walk->depth; i++) {
		uint32_t wait = link_at(c, i)->wait, before = link_at(c, i > 1 ? i - 1 : walk->depth)->wait;

		ck_step_held(c, before, CK_WAITING(c, wait)->thread);
		ck_step_wait(c, wait, link_at(c, i)->thread);
	}
}

/* So many of the locks that a thread took last are looked at. */
#define NEAR 16u

/* Whether another thread may wait for this thread, which waits itself. Otherwise no cycle leads through it. */
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

static void find_cycle(struct ptt_check *c, uint32_t thread, const struct tk_event *e, bool at_end)
{
	struct walk walk = { .start = thread, .depth = 1, .at_end = at_end };
	uint32_t wait = CK_THREAD(c, thread)->waits;

	if (!wait || ck_limited(CK_WAITING(c, wait)) || CK_THREAD(c, thread)->flags & CK_CLEAR ||
	    !may_be_awaited(c, thread, at_end))
		return;
	if (c->links.count < 2 && !ck_new(c, &c->links))
		return;
	c->mark++;
	link_at(c, 1)->wait = wait;
	if (!walk_from(c, &walk))
		return;
	tell_cycle(c, e, &walk);
	for (uint32_t i = 1; at_end && i <= walk.depth; i++)
		CK_THREAD(c, CK_WAITING(c, link_at(c, i)->wait)->thread)->flags |= CK_IN_CYCLE;
}

void ck_deadlock(struct ptt_check *c, uint32_t thread, const struct tk_event *e)
{
	find_cycle(c, thread, e, false);
}

/* Waits that are for somebody only because nothing more will happen. */
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
			find_cycle(c, i, e, true);
}

/* ---- locks of threads that a fork left behind ---- */

/* Nobody in the process has had the unit of a semaphore since the fork copied the semaphore, or may give the unit back. */
static uint32_t unit_left_behind(struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object), *theirs = CK_OBJECT(c, o->copied);
	const struct ck_process *p = CK_PROCESS(c, CK_THREAD(c, w->thread)->process);
	bool proven;

	if (!o->copied || w->timed || w->shared || o->flags & PTT_OBJECT_SHARED)
		return 0;
	if (o->init.thread || o->releaser || ck_woke(c, o)->thread || !ck_sem_is_lock(c, theirs))
		return 0;
	/* If it changed hands since the thread that forked did anything, another thread may have had the unit at the fork. */
	if (o->free_before > p->before_fork)
		return 0;
	proven = o->flags & CK_GIVEN_BACK;
	/* That the thread which forked has the unit proves nothing by itself: a signal handler may be to post it. */
	if (o->kept_by.thread == p->forked.thread)
		return proven && p->hung ? o->kept_by.thread : 0;
	return proven || p->hung ? o->kept_by.thread : 0;
}

/* Nobody in the process has ever had it: that another thread of the parent has it is what the fork copied. */
static bool left_behind(const struct ptt_check *c, const struct ck_wait *w)
{
	const struct ck_object *o = CK_OBJECT(c, w->object);
	uint32_t process = CK_THREAD(c, w->thread)->process, forker = CK_PROCESS(c, process)->forked.thread;

	if ((w->kind != NPTL_DOMAIN_MUTEX && w->kind != NPTL_DOMAIN_RWLOCK) || w->timed || w->shared || !w->owner)
		return false;
	if (o->flags & PTT_OBJECT_SHARED || o->process != process || o->init.thread || o->releaser || o->holds)
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
		if (!ck_found(c, PTT_FACT_WAIT_CYCLE, &at, rd_hash(w->id, 0), 0, PTT_FLAG_CLOSED))
			continue;
		if (w->kind == NPTL_DOMAIN_SEM)
			ck_step_last(c, PTT_STEP_TOOK, &CK_OBJECT(c, w->object)->kept_by, CK_OBJECT(c, w->object)->copied);
		ck_step(c, PTT_STEP_FORKED, forked->thread, forked->ts, forked->site, 0)->other = owner;
		ck_step_wait(c, wait, owner);
	}
}

/* ---- locks of processes that have ended ---- */

#define PAGE 4096u

/* When a process had ended at the latest: somebody had waited for it, or the recorder has seen it; TK_NEVER: it goes on. */
static int64_t end_of(struct ptt_check *c, uint32_t process, const int64_t *ends, uint32_t count)
{
	const struct ck_last *known = &CK_PROCESS(c, process)->end_known;
	int64_t seen = process < count ? ends[process] : TK_NEVER;

	return known->thread && (seen == TK_NEVER || known->ts < seen) ? known->ts : seen;
}

/* Did the process of a thread end before a wait of another process began? */
static bool had_ended(struct ptt_check *c, uint32_t thread, const struct ck_wait *w, const int64_t *ends, uint32_t count)
{
	uint32_t process = CK_THREAD(c, thread)->process;
	int64_t end = end_of(c, process, ends, count);

	return process != CK_THREAD(c, w->thread)->process && end != TK_NEVER && end < w->since;
}

/*
 * What the owner of a mutex holds at its address, or, of a mutex for several processes, where the same place of the same page may
 * be mapped at another address; 0: that is not known.
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

/* A hold that keeps a wait from its lock, by a thread of another process that had ended when the wait began; 0: none. */
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
	/* Where it is not known that they have the memory in common, the lock has said who holds it. */
	return w->owner && had_ended(c, w->owner, w, ends, count) ? hold_of_owner(c, w) : 0;
}

/* ---- and their semaphores ---- */

/* Nobody is left in the traced processes who could post a semaphore that a wait is for. */
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
 * A semaphore of one unit, which whoever took it last did not give back before it ended. Another process may be the one that
 * posts it, unless those that took it before have given it back, or nobody else is left.
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
	if (!ck_found(c, PTT_FACT_END_WITH_HOLD, &at, (uint64_t)w->object << 16, at.site, PTT_FLAG_WHOLE))
		return;
	ck_step_held(c, wait, at.thread);
	ck_step(c, PTT_STEP_ENDED, at.thread, at.ts, 0, 0);
	ck_step_wait(c, wait, at.thread);
}

/* Of a robust mutex the kernel gives the waiter word at once: it does not wait. */
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
		if (!ck_found(c, PTT_FACT_END_WITH_HOLD, &at, (uint64_t)h->object << 16, h->site, PTT_FLAG_WHOLE))
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
