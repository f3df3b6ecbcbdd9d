/* SPDX-License-Identifier: MIT */
/* locks.c - acquisitions and releases of locks, the duration of each hold, and its cost to other threads. */
#include "../holds.h"

static void hold_row(struct ptt_model *m, const struct md_hold *h, int64_t ts, uint32_t site, uint32_t stack,
		     const struct tk_sched_sums *spent)
{
	struct ptt_model_hold *row;
	int64_t since = h->since, whole = ts - since;

	if (!(m->flags & PTT_MODEL_ROWS) || !md_inside(m, &since, &ts) ||
	    !md_counted(m, h->thread, h->object, h->site_row))
		return;
	row = md_row(m, &m->hold_rows);
	if (!row)
		return;
	*row = (struct ptt_model_hold){
		.t_ns = since, .dur_ns = ts - since, .off_ns = -1, .ready_ns = -1, .thread = h->thread,
		.object = h->object, .site = h->site_row, .release_site = site, .stack = h->stack,
		.release_stack = stack, .max_waiters = h->max_waiters, .mode = h->mode, .open = !spent,
		.thread_place = h->thread_place, .object_place = h->object_place,
	};
	if (spent && row->dur_ns == whole) {
		row->off_ns = spent->off_ns;
		row->ready_ns = spent->ready_ns;
	}
}

static inline void sum_hold(struct ptt_sums *sums, uint64_t ns, uint64_t used, uint64_t undivided)
{
	sums->hold_n++;
	sums->hold_ns += ns;
	sums->used_ns += used;
	sums->undivided_ns += undivided;
	if (ns > sums->hold_max)
		sums->hold_max = ns;
}

/* Adds a hold to all sums. @spent: time of its thread without a processor; NULL: unknown */
static void account(struct ptt_model *m, const struct md_hold *h, int64_t ts, const struct tk_sched_sums *spent)
{
	int64_t since = h->since, whole = ts - since;
	uint64_t ns, used = 0, undivided;

	if (!md_inside(m, &since, &ts) || !md_counted(m, h->thread, h->object, h->site_row))
		return;
	ns = (uint64_t)(ts - since);
	undivided = ns;
	if (spent && spent->off_ns >= 0 && ts - since == whole) {
		used = (uint64_t)(whole - spent->ready_most_ns);
		undivided = (uint64_t)(spent->ready_most_ns - spent->ready_least_ns);
	}
	sum_hold(&MD_OBJECT(m, h->object)->pub.sums, ns, used, undivided);
	sum_hold(&MD_PAIR(m, h->pair)->sums, ns, used, undivided);
	sum_hold(&MD_THREAD(m, h->thread)->pub.sums, ns, used, undivided);
	sum_hold(&MD_SITE(m, h->site_row)->pub.sums, ns, used, undivided);
}


static void hold_end(struct ptt_model *m, uint32_t number, const struct tk_event *e)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_object *o = MD_OBJECT(m, h->object);
	struct tk_sched_sums spent = { -1, -1, -1, -1 };
	uint32_t site = 0, charged;

	/* The readings of its thread reach up to an event of that thread. */
	if (h->thread == e->thread)
		spent = tk_sched_since(&MD_THREAD(m, h->thread)->sched, &h->sched, e->ts, MD_THREAD(m, h->thread)->pub.last_ns);
	/* Time without a processor between a reading and the acquisition after it does not belong to the hold. */
	if (spent.off_ns > 0)
		tk_sched_limit(&spent, e->ts - h->since);
	if (unlikely(o->crowd))
		md_crowd_tell_holds(m, o);
	if (o->pub.waiters || o->log || m->flags & PTT_MODEL_ROWS)
		site = md_site(m, e->thread, e->site, o->pub.kind);
	hold_row(m, h, e->ts, site, e->stack, &spent);
	account(m, h, e->ts, &spent);
	/* the wait for a routine may be reported after its end */
	if (o->pub.kind == PTT_KIND_ONCE)
		md_log_of(m, o);
	/* If the place of the acquisition is unknown, the release is charged. It has a stack if other threads waited. */
	charged = h->site_row;
	if (e->stack && h->thread == e->thread && md_taken_unseen(m, o, h))
		charged = site | MD_RELEASED;
	md_log_add(m, o, (struct md_log_entry){ h->since, e->ts, h->thread, charged });
	if (o->share != h->share || md_sharing(o)) {
		md_cut_hold(m, number, e->ts, h->thread == e->thread);
		md_share(m, o, e->ts);
		md_charge(m, md_blame(m, h->object, h->thread, charged), (int64_t)(o->share - h->share));
	}
	tk_released(&m->t, h->object, e);
	o->release_row = site;
	o->held_site = h->thread == e->thread ? h->site_row : 0;
	md_hold_unlink(m, number);
}

void md_acquire(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint32_t pair, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t number;

	if (unlikely(o->tail))
		md_close_tail(m, o, e->ts);
	/* The thread of a condition wait takes its mutex back. */
	if (t->pub.waits && MD_WAITING(m, t->pub.waits)->mutex == object && MD_WAITING(m, t->pub.waits)->retaken == TK_NEVER) {
		md_share(m, o, e->ts);
		MD_WAITING(m, t->pub.waits)->retaken = e->ts;
		MD_WAITING(m, t->pub.waits)->mutex_held = o->held;
		MD_WAITING(m, t->pub.waits)->mutex_held_all = o->held_all;
	}
	if (unlikely(!MD_OBJECT(m, object)->pub.first_site))
		o->pub.first_site = md_site(m, e->thread, e->site, o->pub.kind);
	if (!tk_knows_holds(TK_PROCESS(&m->t, e->process), o->pub.kind, e->object)) {
		/* Without recorded releases, a thread is blamed until another thread takes the lock. */
		if (o->pub.waiters)
			md_blame_from(m, object, e->thread, md_site(m, e->thread, e->site, o->pub.kind), e->ts);
		return;
	}
	number = o->pub.holds ? tk_hold_find(&m->t, e->thread, object) : 0;
	if (number) {
		MD_HOLD(m, number)->depth++;
		return;
	}
	/* Another thread holds it in the model: the trace lacks the release. */
	if (unlikely(o->pub.holds && (mode == PTT_MODE_EXCLUSIVE || MD_HOLD(m, o->pub.holds)->mode == PTT_MODE_EXCLUSIVE)))
		md_drop_holds(m, object, e->ts);
	if (t->pub.holds && m->flags & PTT_MODEL_EDGES && !tk_has(e->id, TK_WAIT_NS) && o->pub.kind != PTT_KIND_SEM)
		md_edges(m, e, object, mode, false);
	if (md_sharing(o))
		md_share(m, o, e->ts);
	/* The release will add to this member. */
	__builtin_prefetch(&MD_PAIR(m, pair)->sums.hold_n, 1);
	md_hold_begin(m, e, object, pair, md_site(m, e->thread, e->site, o->pub.kind), mode);
}

/* The trace lacks the acquisition of a lock that is released. */
static void released_unseen(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);

	if (o->tail) {
		/* The thread that was taken for the holder released the lock unseen, and this thread took it. */
		if (MD_BLAME(m, o->tail)->thread != e->thread)
			o->tail = md_blame(m, object, e->thread, 0);
		md_close_tail(m, o, e->ts);
		return;
	}
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next)
		md_claim(m, MD_WAITING(m, i), e->thread, 0, e->ts);
	md_log_add(m, o, (struct md_log_entry){ o->pub.release_ns, e->ts, e->thread, 0 });
}

/* Number of the latest waiters that learn where their owner released the lock. */
#define RELEASE_SEEN_MAX 64u

static __attribute__((cold, noinline)) void note_release_stack(struct ptt_model *m, const struct md_object *o, const struct tk_event *e)
{
	uint32_t left = RELEASE_SEEN_MAX, site = md_site(m, e->thread, e->site, o->pub.kind);

	for (uint32_t i = o->pub.waits; i && left--; i = MD_WAITING(m, i)->object_next) {
		struct md_wait *w = MD_WAITING(m, i);

		if (w->owner != e->thread || w->released_stack)
			continue;
		w->released_stack = e->stack;
		w->released_site = site;
	}
}

void md_release(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t hold = tk_hold_released(&m->t, e), object, pair;
	struct md_object *o;

	if (likely(hold)) {
		object = MD_HOLD(m, hold)->object;
		MD_OBJECT(m, object)->pub.last_ns = e->ts;
	} else {
		/* Some kinds of locks let a thread release the lock of another thread. */
		object = md_object(m, e, e->id >> 6, e->object, &pair);
		hold = MD_OBJECT(m, object)->pub.holds;
	}
	o = MD_OBJECT(m, object);
	if (unlikely(e->stack && o->pub.waits))
		note_release_stack(m, o, e);
	if (!hold) {
		released_unseen(m, e, object);
		md_no_owner_follows(m, o);
		o->held_site = 0;
		tk_released(&m->t, object, e);
		o->release_row = md_site(m, e->thread, e->site, o->pub.kind);
		return;
	}
	if (--MD_HOLD(m, hold)->depth == 0)
		hold_end(m, hold, e);
}

void md_destroy(struct ptt_model *m, const struct tk_event *e)
{
	uint32_t object = md_object_without_use(m, e, tk_destroy);

	if (!object)
		return;
	MD_OBJECT(m, object)->given_away = false;
	while (md_has_holder(MD_OBJECT(m, object)))
		hold_end(m, MD_OBJECT(m, object)->pub.holds, e);
	md_drop_holds(m, object, e->ts);
}

void md_hold_open_rows(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->t.objects.count; i++) {
		struct md_object *o = MD_OBJECT(m, i);
		int64_t end = ends[o->pub.process];

		md_close_tail(m, o, end);
		md_share(m, o, end);
		md_crowd_tell_holds(m, o);
		for (uint32_t hold = o->pub.holds; hold; hold = MD_HOLD(m, hold)->object_next) {
			const struct md_hold *h = MD_HOLD(m, hold);

			md_cut_hold(m, hold, end, false);
			hold_row(m, h, end, 0, 0, NULL);
			account(m, h, end, NULL);
			if (o->share != h->share)
				md_charge(m, md_blame(m, i, h->thread, md_taken_in(o, h)), (int64_t)(o->share - h->share));
		}
	}
}

int ptt_model_holding(struct ptt_model *m, int64_t now)
{
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		for (uint32_t hold = MD_THREAD(m, i)->pub.holds; hold; hold = MD_HOLD(m, hold)->thread_next) {
			const struct md_hold *h = MD_HOLD(m, hold);

			if (!md_has_holder(MD_OBJECT(m, h->object)))
				continue;
			md_crowd_tell_holds(m, MD_OBJECT(m, h->object));
			hold_row(m, h, now > h->since ? now : h->since, 0, 0, NULL);
		}
	return m->t.error;
}
