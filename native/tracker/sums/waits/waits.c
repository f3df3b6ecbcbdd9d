/* SPDX-License-Identifier: MIT */
/* waits.c - waits from their beginning to their end: class, owner, waker and sums. */
#include "../holds.h"


struct md_end md_end_of(const struct tk_event *e, uint8_t done, int64_t missing_ns)
{
	int64_t result = tk_number(&e->e, TK_RESULT, 0);
	bool succeeded = result == 0 || result == EOWNERDEAD;

	return (struct md_end){
		.ts = e->ts, .dur = tk_number(&e->e, TK_WAIT_NS, missing_ns), .wake = TK_NEVER,
		.result = (int32_t)result,
		.wait_class = succeeded ? done : result == ETIMEDOUT ? PTT_TIMEOUT : PTT_CANCELLED,
	};
}

/*
 * The thread that released a lock last; 0: unknown. If the trace has only releases that threads sleep for, later releases may be
 * missing, but none that a thread sleeps for. @since: when a thread began to wait
 */
static uint32_t last_releaser(struct ptt_model *m, const struct tk_event *e, const struct md_object *o, int64_t since)
{
	bool all = TK_PROCESS(&m->t, e->process)->full[o->pub.kind];

	return all || o->pub.release_ns >= since ? o->pub.releaser : 0;
}

/* ---- beginning ---- */

static void find_owner(struct ptt_model *m, const struct tk_event *e, struct md_object *o, struct md_wait *w)
{
	int64_t tid = tk_number(&e->e, TK_OWNER, 0);

	if (o->pub.holds) {
		w->owner = MD_HOLD(m, o->pub.holds)->thread;
		w->owner_site = MD_HOLD(m, o->pub.holds)->site_row;
		w->owner_stack = MD_HOLD(m, o->pub.holds)->stack;
	} else {
		w->owner = tid > 0 ? md_thread_of_tid(m, e->process, (uint32_t)tid) : last_releaser(m, e, o, e->ts);
		w->named = tid > 0;
		/* This thread released the lock last. So another thread has it, and its acquisition is not in the trace yet. */
		if (!w->named && w->owner == e->thread)
			w->owner = 0;
		w->owner_site = w->owner == o->pub.releaser ? o->held_site : 0;
		w->owner_follows = w->named || !w->owner;
	}
	o->owner_follows |= w->owner_follows;
	/* Without recorded releases, the owner is blamed until another thread takes the lock. */
	if (tk_knows_holds(TK_PROCESS(&m->t, e->process), o->pub.kind, e->object) || o->pub.holds)
		return;
	if (!o->tail || (w->owner && MD_BLAME(m, o->tail)->thread != w->owner))
		md_blame_from(m, w->object, w->owner, w->owner_site, e->ts);
}

void md_crowd(struct md_object *o, uint32_t waiters)
{
	if (o->crowd < waiters)
		o->crowd = waiters;
}

void md_crowd_count(struct ptt_model *m, struct md_object *o, const struct md_wait *w)
{
	if (md_in_window(m, w->since) && o->pub.max_waiters < w->crowd)
		o->pub.max_waiters = w->crowd;
}

void md_crowd_leave(struct ptt_model *m, const struct md_object *o, int64_t ts)
{
	/* The latest wait comes first. */
	for (uint32_t i = o->pub.waits; i && MD_WAITING(m, i)->since >= ts; i = MD_WAITING(m, i)->object_next)
		if (MD_WAITING(m, i)->crowd > 1)
			MD_WAITING(m, i)->crowd--;
}

void md_wait_chain(struct md_wait *w, const struct md_wait *parent)
{
	uint64_t first = parent->chain ? parent->chain : parent->id;

	w->parent = parent->id;
	w->chain = first;
}

/* Finds the owner, the parent and the edges of a wait for a lock. */
static void begin_for_lock(struct ptt_model *m, const struct tk_event *e, struct md_object *o, struct md_wait *w)
{
	const struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t theirs;

	md_log_of(m, o);
	find_owner(m, e, o, w);
	w->held = o->held;
	o->sharing += w->counted;
	md_watch_holds(m, o);
	theirs = w->owner == e->thread ? w->thread_next : MD_THREAD(m, w->owner)->pub.waits;
	if (w->owner && theirs)
		md_wait_chain(w, MD_WAITING(m, theirs));
	if (t->pub.holds && m->flags & PTT_MODEL_EDGES)
		md_edges(m, e, w->object, w->mode, true);
}

/* The same for a semaphore used as a lock. */
static void begin_for_unit(struct ptt_model *m, struct md_object *o, struct md_wait *w)
{
	md_log_of(m, o);
	w->held = o->held;
	o->sharing += w->counted;
	md_watch_holds(m, o);
	if (!o->pub.holds)
		return;
	w->owner = MD_HOLD(m, o->pub.holds)->thread;
	w->owner_site = MD_HOLD(m, o->pub.holds)->site_row;
	w->owner_stack = MD_HOLD(m, o->pub.holds)->stack;
	if (MD_THREAD(m, w->owner)->pub.waits)
		md_wait_chain(w, MD_WAITING(m, MD_THREAD(m, w->owner)->pub.waits));
}

/* A thread waits at a semaphore for the end of the thread that made it and will post it. */
static void begin_for_end(struct ptt_model *m, const struct md_object *o, struct md_wait *w)
{
	if (!o->pub.attributes)
		return;
	w->owner = o->maker;
	if (MD_THREAD(m, o->maker)->pub.waits)
		md_wait_chain(w, MD_WAITING(m, MD_THREAD(m, o->maker)->pub.waits));
}

/* The number of locks that a thread holds; -1 if the trace lacks acquisitions and releases of mutexes. */
static int32_t locks_held(struct ptt_model *m, const struct tk_event *e)
{
	return tk_knows_holds(TK_PROCESS(&m->t, e->process), PTT_KIND_MUTEX, 0) ? (int32_t)MD_THREAD(m, e->thread)->pub.held : -1;
}

uint32_t md_wait_begin(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint32_t number = tk_wait_of(&m->t, e->thread, object);
	struct md_wait gone, *w;

	/* It expects another thread to give back the unit that it took. */
	if (o->as_lock && o->pub.holds && (o->given_away || MD_HOLD(m, o->pub.holds)->thread == e->thread))
		md_no_lock(m, object, e->ts);

	/* The trace lacks the end of an earlier wait. */
	if (unlikely(number))
		md_wait_take(m, e, object, &gone);
	md_cut_holds(m, e);
	number = tk_wait_begin(&m->t, e, object, mode);
	if (!number)
		return 0;
	w = MD_WAITING(m, number);
	w->site_row = md_site(m, e->thread, e->site, o->pub.kind);
	md_share(m, o, e->ts);
	w->counted = md_counted(m, e->thread, object, w->site_row);
	w->sched = tk_sched_mark(&MD_THREAD(m, e->thread)->sched, e->ts, MD_THREAD(m, e->thread)->pub.last_ns);
	if (md_is_lock(o->pub.kind))
		begin_for_lock(m, e, o, w);
	else if (o->as_lock)
		begin_for_unit(m, o, w);
	else if (o->purpose == PTT_FOR_END)
		begin_for_end(m, o, w);
	w->depth = o->pub.waiters;
	w->locks_held = locks_held(m, e);
	w->crowd = o->pub.waiters + o->awaited;
	md_crowd(o, w->crowd);
	if (!o->pub.first_site)
		o->pub.first_site = w->site_row;
	return number;
}

void md_take_call_of_wait(const struct ptt_model *m, struct tk_event *e, uint32_t object)
{
	uint32_t wait = tk_wait_of(&m->t, e->thread, object);

	if (!wait || e->stack || !MD_WAITING(m, wait)->stack)
		return;
	e->stack = MD_WAITING(m, wait)->stack;
	/* the call site of the stack, not of a wrapper */
	e->site = MD_WAITING(m, wait)->site;
}

/* ---- end ---- */

static void wait_unlink(struct ptt_model *m, uint32_t number, int64_t ts)
{
	const struct md_wait *w = MD_WAITING(m, number);
	struct md_object *o = MD_OBJECT(m, w->object);

	md_share(m, o, ts);
	if (md_is_lock(w->kind) || o->as_lock)
		o->sharing -= w->counted;
	tk_wait_end(&m->t, number);
	if (o->pub.waiters == 0)
		md_close_tail(m, o, ts);
}

bool md_wait_take(struct ptt_model *m, const struct tk_event *e, uint32_t object, struct md_wait *out)
{
	uint32_t number = tk_wait_of(&m->t, e->thread, object), by;
	const struct md_object *o = MD_OBJECT(m, object);
	int64_t dur;

	dur = tk_number(&e->e, TK_WAIT_NS, 0);
	if (likely(number)) {
		*out = *MD_WAITING(m, number);
		md_cut_holds(m, e);
		wait_unlink(m, number, e->ts);
		if (likely(e->ts - dur >= out->since))
			return true;
		/* the wait began before its first event; a once routine may have ended in between */
		out->since = e->ts - dur;
		if (o->pub.kind != PTT_KIND_ONCE)
			return true;
		by = last_releaser(m, e, o, out->since);
		out->owner = by != e->thread ? by : 0;
		return false;
	}
	by = last_releaser(m, e, o, e->ts - dur);
	*out = (struct md_wait){
		.since = e->ts - dur, .id = ++m->t.wait_id, .retaken = TK_NEVER, .thread = e->thread,
		.object = object, .site_row = md_site(m, e->thread, e->site, o->pub.kind),
		.owner = md_is_lock(o->pub.kind) && by != e->thread ? by : 0,
		.depth = o->pub.waiters + 1, .locks_held = locks_held(m, e),
		.crowd = o->pub.waiters + 1, .kind = (uint8_t)o->pub.kind,
	};
	out->counted = md_counted(m, out->thread, object, out->site_row);
	return false;
}

/* Computes how long other threads held a lock during a wait. The end of a wait is stamped after the thread has continued. */
static void divide(struct ptt_model *m, const struct md_wait *w, bool known, struct md_end *end)
{
	struct md_object *o = MD_OBJECT(m, w->object);
	int64_t awake = w->since + end->dur;
	uint64_t most;

	if (!w->counted)
		return;
	if (!known) {
		end->held = md_blame_past(m, w->object, w->thread, w->since, awake);
		return;
	}
	if (awake < end->ts)
		end->held -= md_take_back(m, w->object, awake, end->ts, end->held);
	most = (uint64_t)md_portion(m, w->since, awake, 1, 1);
	if (end->held > most) {
		o->excess += end->held - most;
		end->held = most;
	}
}


void md_lock_waited(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_end end = md_end_of(e, PTT_CONTENDED, -1);
	struct md_wait w;
	/* A lock with unseen acquisitions and releases: its last known holder released it at an unknown time. */
	uint32_t last = o->tail && tk_is_numbered(e->object) ? MD_BLAME(m, o->tail)->thread : 0;
	bool known = md_wait_take(m, e, object, &w);
	uint32_t by = last_releaser(m, e, o, w.since);

	if (!known && end.dur <= 0)
		return; /* taken without a wait; the event only reports a result */
	if (end.dur < 0)
		end.dur = e->ts - w.since;
	end.held = known ? o->held - w.held : 0;
	end.wait_class = md_class(o, end.wait_class);
	if (end.wait_class != PTT_CONTENDED) {
		if (known && w.counted)
			md_unblame(m, object, w.since, e->ts, end.held);
		md_wait_account(m, &w, &end);
		return;
	}
	divide(m, &w, known, &end);
	if (by && by != e->thread) {
		end.waker = by;
		end.waker_site = md_release_row(m, o);
		end.waker_stack = o->pub.release_stack;
		end.wake = o->pub.release_ns;
		end.wake_kind = o->pub.kind == PTT_KIND_ONCE ? PTT_WAKE_ONCE :
				o->pub.kind == PTT_KIND_SEM  ? PTT_WAKE_POST :
							       PTT_WAKE_RELEASE;
	} else if (last && last != e->thread) {
		end.waker = last;
		end.wake = e->ts;
		end.wake_kind = PTT_WAKE_RELEASE;
	}
	md_wait_account(m, &w, &end);
}

/* ---- sums ---- */

static void sum_wait(struct ptt_model *m, struct ptt_sums *sums, uint32_t *histogram, const struct md_end *end,
		     uint64_t ns)
{
	sums->wait_n[end->wait_class]++;
	sums->wait_ns[end->wait_class] += ns;
	if (end->wait_class != PTT_CONTENDED)
		return;
	sums->held_ns += end->held;
	if (ns > sums->wait_max)
		sums->wait_max = ns;
	if (histogram)
		md_histogram_add(m, histogram, ns);
}

static void sum_cause(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, uint64_t ns)
{
	bool lock = md_is_lock(w->kind) || MD_OBJECT(m, w->object)->as_lock, made;
	uint32_t cause = lock ? w->owner : end->waker ? end->waker : w->owner;
	/* the holder of an acquisition at an unknown place is named by its release, as for the blame */
	bool hidden = w->kind == PTT_KIND_SEM || MD_SITE(m, w->owner_site)->use & PTT_SITE_IN_WRAPPER;
	bool unseen = hidden && !w->owner_stack && w->owner == end->waker && end->waker_stack;
	uint32_t cause_site = lock && !unseen ? w->owner_site : end->waker_site, key;
	struct rd_entry *entry = rd_map_put(&m->cause_key, (uint64_t)w->site_row << 32 | cause_site,
					    (uint64_t)cause << 8 | end->wait_class);
	struct ptt_model_cause *c;

	if (!entry) {
		m->t.error = -ENOMEM;
		return;
	}
	if (!entry->value)
		entry->value = m->cause_key.count;
	key = md_lookup(m, &m->cause_of, &m->causes, (uint64_t)w->thread << 32 | w->object, entry->value, &made);
	c = &((struct ptt_model_cause *)(void *)m->causes.items)[key];
	if (made)
		*c = (struct ptt_model_cause){
			.thread = w->thread, .object = w->object, .site = w->site_row, .cause = cause,
			.cause_site = cause_site, .wait_class = end->wait_class,
		};
	c->n++;
	c->ns += ns;
	if (end->wait_class == PTT_CONTENDED)
		c->held_ns += end->held;
	if (ns > c->max)
		c->max = ns;
}

static void sum_waker(struct ptt_model *m, const struct md_wait *w, const struct md_end *end, uint64_t ns)
{
	bool made;
	uint32_t number = md_lookup(m, &m->waker_of, &m->wakers, (uint64_t)w->object << 32 | end->waker,
				    end->waker_site, &made);
	struct ptt_model_waker *waker = &((struct ptt_model_waker *)(void *)m->wakers.items)[number];

	if (made)
		*waker = (struct ptt_model_waker){ .object = w->object, .thread = end->waker, .site = end->waker_site };
	waker->n++;
	waker->ns += ns;
}

/* Sets the place of the holder: where it took the lock, or else where it released the lock. */
static void place_holder(const struct md_wait *w, const struct md_end *end, struct ptt_model_wait *row)
{
	row->holder_stack = w->owner_stack;
	row->holder_site = w->owner_site;
	if (w->owner_stack)
		return;
	if (w->released_stack) {
		row->holder_stack = w->released_stack;
		row->holder_site = w->released_site;
	} else if (end->waker == w->owner && end->waker_stack) {
		row->holder_stack = end->waker_stack;
		row->holder_site = end->waker_site;
	}
}

void md_wait_row(struct ptt_model *m, struct md_rows *rows, const struct md_wait *w, const struct md_end *end,
		 int64_t since, int64_t until)
{
	const struct md_thread *t = MD_THREAD(m, w->thread);
	struct ptt_model_wait *row = md_row(m, rows);
	bool whole = !end->open && until - since == (end->dur >= 0 ? end->dur : end->ts - w->since);

	if (!row)
		return;
	*row = (struct ptt_model_wait){
		.t_ns = since, .dur_ns = until - since, .begin_ns = w->since,
		.held_ns = end->wait_class == PTT_CONTENDED ? (int64_t)end->held : 0,
		.waker_t_ns = end->wake,
		.ready_ns = whole ? tk_sched_since(&t->sched, &w->sched, end->ts, t->pub.last_ns).ready_ns : -1,
		.id = w->id, .parent = w->parent, .chain = w->chain ? w->chain : w->id,
		.thread = w->thread, .object = w->object, .site = w->site_row, .owner = w->owner,
		.owner_site = w->owner_site, .waker = end->waker, .waker_site = end->waker_site,
		.queue_depth = w->depth, .locks_held = w->locks_held, .stack = w->stack,
		.owner_stack = w->owner_stack, .waker_stack = end->waker_stack, .result = end->result,
		.wait_class = end->wait_class, .kind = w->kind, .mode = w->mode, .open = end->open,
	};
	place_holder(w, end, row);
}

/*
 * A release, or the end of a thread, is stamped before it happens. So a wait for it may begin after that stamp. Then the wake-up
 * is at the beginning of the wait. The wake-up is in the window if its own time is.
 */
static void wakeup_row(struct ptt_model *m, const struct md_wait *w, const struct md_end *end)
{
	int64_t t_ns = end->wake > w->since ? end->wake : w->since;
	struct ptt_model_wakeup *row;

	if (end->wake == TK_NEVER || !md_in_window(m, t_ns))
		return;
	row = md_row(m, &m->wakeup_rows);
	if (!row)
		return;
	*row = (struct ptt_model_wakeup){
		.t_ns = t_ns, .woken_ns = end->ts, .wait = w->id, .waker = end->waker,
		.wakee = w->thread, .object = w->object, .site = end->waker_site,
		.kind = end->wake_kind,
	};
}

void md_wait_account(struct ptt_model *m, const struct md_wait *w, const struct md_end *end)
{
	int64_t dur = end->dur >= 0 ? end->dur : end->ts - w->since;
	int64_t since = w->since, until = since + dur;
	struct md_object *o = MD_OBJECT(m, w->object);
	bool inside;
	uint64_t ns;
	struct md_thread *t = MD_THREAD(m, w->thread);
	struct md_site *s = MD_SITE(m, w->site_row);

	md_crowd_count(m, o, w);
	md_crowd_leave(m, o, until);
	inside = md_inside(m, &since, &until);
	ns = until > since ? (uint64_t)(until - since) : 0;
	if (m->flags & PTT_MODEL_PATH)
		md_step_add(m, w, end, dur);
	if (inside)
		t->pub.blocked_ns += ns;
	if (m->flags & PTT_MODEL_STATES_OF)
		md_state_of_wait(m, w, end->wait_class, w->since + dur);
	if (!md_counted(m, w->thread, w->object, w->site_row))
		return;
	if (end->waker && m->flags & PTT_MODEL_ROWS)
		wakeup_row(m, w, end);
	if (!inside)
		return;
	sum_wait(m, &o->pub.sums, &o->pub.histogram, end, ns);
	sum_wait(m, &t->pub.sums, &t->pub.histogram, end, ns);
	sum_wait(m, &s->pub.sums, &s->pub.histogram, end, ns);
	if (m->flags & PTT_MODEL_PAIRS_OF)
		sum_wait(m, &MD_PAIR(m, md_pair(m, w->thread, w->object))->sums, NULL, end, ns);
	t->pub.kind_ns[w->kind % PTT_KINDS] += ns;
	sum_cause(m, w, end, ns);
	if (end->waker)
		sum_waker(m, w, end, ns);
	if (m->flags & PTT_MODEL_ROWS)
		md_wait_row(m, &m->wait_rows, w, end, since, until);
	if (end->open) /* with its beginning, even before the window */
		md_wait_row(m, &m->open_rows, w, end, w->since, until);
}
