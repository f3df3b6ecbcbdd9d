/* SPDX-License-Identifier: MIT */
/* open_waits.c - waits that go on: at the end of a trace, and at a moment while it is read. */
#include "../holds.h"

static uint8_t class_by_kind(struct ptt_model *m, const struct md_wait *w)
{
	switch (w->kind) {
	case PTT_KIND_THREAD:
		return PTT_JOIN;
	case PTT_KIND_COND:
		return PTT_IDLE;
	case PTT_KIND_FUTEX:
		return md_futex_class(w);
	case PTT_KIND_SEM:
		if (md_has_holder(MD_OBJECT(m, w->object)))
			return PTT_CONTENDED;
		return md_sem_unknown_class(m, w);
	}
	return PTT_CONTENDED;
}

static uint8_t open_class(struct ptt_model *m, const struct md_wait *w)
{
	return md_class(MD_OBJECT(m, w->object), class_by_kind(m, w));
}

static bool for_lock(const struct md_object *o, const struct md_wait *w)
{
	return md_is_lock(w->kind) || o->as_lock;
}

/* Whether a lock was taken before its recording began, and not released since: only the lock itself may name its holder. */
static bool held_unseen(const struct md_object *o)
{
	return !o->pub.holds && !o->tail && !o->pub.releaser;
}

/* Sets the owner of an open wait for a lock to the present holder. A released lock has no holder. */
static void wait_for_holder(struct ptt_model *m, struct md_wait *w)
{
	const struct md_object *o = MD_OBJECT(m, w->object);
	const struct md_wakeup *taken = w->kind == PTT_KIND_COND ? md_gil_taken(m, o) : NULL;

	if (taken && taken->thread != w->thread) {
		w->owner = taken->thread;
		w->owner_site = taken->site_row;
		w->owner_stack = taken->stack;
	}
	if (!for_lock(o, w))
		return;
	if (md_has_holder(o)) {
		w->owner = MD_HOLD(m, o->pub.holds)->thread;
		w->owner_site = md_taken_in(o, MD_HOLD(m, o->pub.holds));
		w->owner_stack = MD_HOLD(m, o->pub.holds)->stack;
	} else if (tk_knows_holds(TK_PROCESS(&m->t, o->pub.process), w->kind, o->pub.address) && !held_unseen(o)) {
		w->owner = w->owner_site = w->owner_stack = w->released_stack = 0;
	} else if (o->pub.releaser && o->pub.release_ns >= w->since) {
		/* only waits are recorded, and the lock was given up since: the last thread that took it after a wait has it */
		w->owner = MD_BLAME(m, o->tail)->thread;
		w->owner_site = MD_BLAME(m, o->tail)->site;
		w->owner_stack = w->released_stack = 0;
	}
}

/* The end of a wait that goes on at @now as far as the trace shows: a thread that has ended waits no more. */
static int64_t end_of_wait(const struct ptt_model *m, const struct md_wait *w, int64_t now)
{
	int64_t end = md_life_end(&MD_THREAD(m, w->thread)->pub, now);

	return end > w->since || now < w->since ? end : w->since;
}

/*
 * Divides an open contended wait among the threads to blame, and sets end->held. If the thread ended before @now, the trace lacks
 * the end of the wait, and the wait has shared the blame for too long.
 */
static void divide_open(struct ptt_model *m, struct md_wait *w, struct md_end *end, int64_t now)
{
	struct md_object *o = MD_OBJECT(m, w->object);
	uint64_t dur = (uint64_t)md_portion(m, w->since, end->ts, 1, 1);

	if (!for_lock(o, w)) {
		md_blame_waker(m, w, end);
		return;
	}
	md_share(m, o, now);
	if (held_unseen(o))
		md_claim(m, w, w->owner, w->owner_site, end->ts);
	end->held = o->held - w->held;
	if (end->ts < now && w->counted)
		end->held -= md_take_back(m, w->object, end->ts, now, end->held);
	if (end->held > dur) {
		if (w->counted)
			md_unblame(m, w->object, end->ts, end->ts, end->held - dur);
		end->held = dur;
	}
}

static void finish_wait(struct ptt_model *m, struct md_wait *w, int64_t now)
{
	struct md_end end = { .dur = -1, .wake = TK_NEVER, .open = true };
	int64_t signalled;

	if (w->kind == PTT_KIND_COND) {
		struct md_wait cond = *w;

		if (md_cond_open(m, w, &signalled)) {
			struct md_end woken = { .ts = signalled, .dur = -1, .wake = TK_NEVER, .wait_class = PTT_IDLE };

			woken.wait_class = md_class(MD_OBJECT(m, cond.object), PTT_IDLE);
			md_wait_account(m, &cond, &woken);
		}
	}
	wait_for_holder(m, w);
	end.ts = end_of_wait(m, w, now);
	end.wait_class = open_class(m, w);
	if (end.wait_class == PTT_CONTENDED)
		divide_open(m, w, &end, now);
	md_wait_account(m, w, &end);
}

int md_finish_waits(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		if (!md_has_holder(MD_OBJECT(m, i)))
			md_no_lock(m, i, ends[MD_OBJECT(m, i)->pub.process]);
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i);

		for (uint32_t wait = t->pub.waits; wait; wait = MD_WAITING(m, wait)->thread_next) {
			struct md_wait w = *MD_WAITING(m, wait);

			finish_wait(m, &w, ends[t->pub.process]);
		}
	}
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		md_drop_wakes(m, i, ends[MD_OBJECT(m, i)->pub.process]);
	return m->t.error;
}

/* For how much of an open wait a thread held the object, up to now, in ns. Charges no thread. */
static uint64_t held_so_far(const struct ptt_model *m, const struct md_wait *w, int64_t now)
{
	const struct md_object *o = MD_OBJECT(m, w->object);
	uint64_t dur = (uint64_t)md_portion(m, w->since, now, 1, 1);
	uint64_t held = o->held - w->held;
	int64_t from = o->share_ts;

	if (!for_lock(o, w))
		return dur;
	if (held_unseen(o))
		from = w->since;
	else if (!o->pub.holders && !o->tail)
		from = now;
	if (now > from)
		held += (uint64_t)md_portion(m, from, now, 1, 1);
	return held < dur ? held : dur;
}

int ptt_model_waiting(struct ptt_model *m, int64_t now, const int64_t *ends, uint32_t count)
{
	struct md_end end = { .dur = -1, .wake = TK_NEVER, .open = true };

	m->open_rows.count = 0;
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i);
		bool ended = ends && t->pub.process < count && ends[t->pub.process] < now;
		int64_t until = ended ? ends[t->pub.process] : now;

		for (uint32_t wait = t->pub.waits; wait; wait = MD_WAITING(m, wait)->thread_next) {
			struct md_wait w = *MD_WAITING(m, wait);

			md_crowd_count(m, MD_OBJECT(m, w.object), &w);
			wait_for_holder(m, &w);
			end.ts = end_of_wait(m, &w, until);
			end.wait_class = open_class(m, &w);
			end.held = end.wait_class == PTT_CONTENDED ? held_so_far(m, &w, end.ts) : 0;
			md_wait_row(m, &m->open_rows, &w, &end, w.since, end.ts > w.since ? end.ts : w.since);
		}
	}
	return m->t.error;
}
