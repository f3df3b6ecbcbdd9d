/* SPDX-License-Identifier: MIT */
/* holds.c - who holds which lock since when, what that costs others, and which locks are asked for meanwhile. */
/*
 * Blame. While threads wait for a lock, each moment of their waiting is divided among those who hold it: `share` of an
 * object is the integral of waiters / holders over time, so what a hold has cost is the difference of two of its values.
 * Between a release and the next acquisition, whoever held it last goes on being blamed: `tail`.
 */
#include "internal.h"
#include "nptl_trace_events.h"

void md_share(struct md_object *o, int64_t ts)
{
	if (o->pub.waiters && ts > o->share_ts)
		o->share += (uint64_t)(ts - o->share_ts) * o->pub.waiters / (o->pub.holders > 1 ? o->pub.holders : 1);
	o->share_ts = ts;
}

void md_close_tail(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	if (!o->tail)
		return;
	md_share(o, ts);
	md_charge(m, o->tail, (int64_t)(o->share - o->tail_share));
	o->tail = 0;
}

void md_blame_from(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_log *log;

	md_close_tail(m, o, ts);
	md_share(o, ts);
	o->named = false;
	o->tail = thread ? md_blame(m, object, thread, site) : 0;
	o->tail_share = o->share;
	if (!o->log)
		return;
	log = MD_LOG_OF(m, o);
	log->entry[log->count++ % MD_LOG] = (struct md_log_entry){ ts, MD_NEVER, thread, site };
}

void md_name_owner(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	if (o->named && o->tail && MD_BLAME(m, o->tail)->thread == thread)
		return;
	md_blame_from(m, object, thread, site, ts);
	o->named = true;
}

void md_place_owner(struct ptt_model *m, const struct md_event *e, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint32_t site;

	o->named = false;
	if (!o->tail || MD_BLAME(m, o->tail)->thread != e->thread || !m->processes[e->process].full[o->pub.kind])
		return;
	site = md_site(m, e->thread, e->site, o->pub.kind);
	o->tail = md_blame(m, object, e->thread, site);
	if (o->log)
		MD_LOG_OF(m, o)->entry[(MD_LOG_OF(m, o)->count - 1) % MD_LOG].site = site;
	for (uint32_t i = o->waits; i; i = MD_WAITING(m, i)->object_next)
		if (MD_WAITING(m, i)->named && MD_WAITING(m, i)->owner == e->thread)
			MD_WAITING(m, i)->owner_site = site;
}

uint32_t md_log_of(struct ptt_model *m, struct md_object *o)
{
	if (!o->log)
		o->log = md_new(m, &m->logs);
	return o->log;
}

/* The first free place, which is taken; the last one has room for all that find no other. */
static uint8_t take_place(uint64_t *places)
{
	uint8_t place = ~*places ? (uint8_t)__builtin_ctzll(~*places) : PTT_MODEL_PLACES - 1;

	if (place < PTT_MODEL_PLACES - 1)
		*places |= UINT64_C(1) << place;
	return place;
}

static void leave_place(uint64_t *places, uint8_t place)
{
	*places &= ~(UINT64_C(1) << place);
}

static uint32_t hold_find(const struct ptt_model *m, uint32_t thread, uint32_t object)
{
	uint32_t hold = MD_THREAD(m, thread)->holds;

	while (hold && MD_HOLD(m, hold)->object != object)
		hold = MD_HOLD(m, hold)->thread_next;
	return hold;
}

static void hold_unlink(struct ptt_model *m, uint32_t number)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_object *o = MD_OBJECT(m, h->object);
	uint32_t *at = &MD_THREAD(m, h->thread)->holds;

	while (*at && *at != number)
		at = &MD_HOLD(m, *at)->thread_next;
	*at = h->thread_next;
	MD_THREAD(m, h->thread)->pub.held--;
	leave_place(&MD_THREAD(m, h->thread)->places, h->thread_place);
	leave_place(&o->places, h->object_place);
	if (h->object_prev)
		MD_HOLD(m, h->object_prev)->object_next = h->object_next;
	else
		o->holds = h->object_next;
	if (h->object_next)
		MD_HOLD(m, h->object_next)->object_prev = h->object_prev;
	o->pub.holders--;
	o->pub.holder = o->holds ? MD_HOLD(m, o->holds)->thread : 0;
	h->thread_next = m->free_hold;
	m->free_hold = number;
}

static void hold_row(struct ptt_model *m, const struct md_hold *h, int64_t ts, uint32_t site, bool open)
{
	struct ptt_model_hold *row;

	if (!(m->flags & PTT_MODEL_ROWS) || !md_counted(m, h->thread, h->object, h->site))
		return;
	row = md_row(m, &m->hold_rows);
	if (!row)
		return;
	row->t_ns = h->since;
	row->dur_ns = ts - h->since;
	row->thread = h->thread;
	row->object = h->object;
	row->site = h->site;
	row->release_site = site;
	row->max_waiters = h->max_waiters;
	row->mode = h->mode;
	row->open = open;
	row->thread_place = h->thread_place;
	row->object_place = h->object_place;
}

static inline void sum_hold(struct ptt_sums *sums, uint64_t ns)
{
	sums->hold_n++;
	sums->hold_ns += ns;
	if (ns > sums->hold_max)
		sums->hold_max = ns;
}

static void account(struct ptt_model *m, const struct md_hold *h, int64_t ts)
{
	uint64_t ns = (uint64_t)(ts - h->since);

	if (!md_counted(m, h->thread, h->object, h->site))
		return;
	sum_hold(&MD_OBJECT(m, h->object)->pub.sums, ns);
	sum_hold(&MD_PAIR(m, h->pair)->sums, ns);
	sum_hold(&MD_THREAD(m, h->thread)->pub.sums, ns);
	sum_hold(&MD_SITE(m, h->site)->pub.sums, ns);
}

static void hold_end(struct ptt_model *m, uint32_t number, const struct md_event *e)
{
	struct md_hold *h = MD_HOLD(m, number);
	struct md_object *o = MD_OBJECT(m, h->object);
	uint32_t site = 0;

	if (o->pub.waiters || o->log || m->flags & PTT_MODEL_ROWS)
		site = md_site(m, e->thread, e->site, o->pub.kind);
	hold_row(m, h, e->ts, site, false);
	account(m, h, e->ts);
	if (o->log) {
		struct md_log *log = MD_LOG_OF(m, o);

		log->entry[log->count++ % MD_LOG] =
			(struct md_log_entry){ h->since, e->ts, h->thread, h->site };
	}
	if (o->share != h->share || o->pub.waiters) {
		uint32_t blame = md_blame(m, h->object, h->thread, h->site);

		md_share(o, e->ts);
		md_charge(m, blame, (int64_t)(o->share - h->share));
		if (o->pub.waiters && o->pub.holders == 1) {
			o->tail = blame;
			o->tail_share = o->share;
		}
	}
	o->release_ts = e->ts;
	o->release_thread = e->thread;
	o->release_site = site;
	o->held_site = h->thread == e->thread ? h->site : 0;
	hold_unlink(m, number);
}

void md_drop_holds(struct ptt_model *m, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);

	while (o->holds)
		hold_unlink(m, o->holds);
	o->tail = 0;
}

void md_acquire(struct ptt_model *m, const struct md_event *e, uint32_t object, uint32_t pair, uint8_t mode)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_thread *t = MD_THREAD(m, e->thread);
	struct md_hold *h;
	uint32_t number;

	md_close_tail(m, o, e->ts);
	/* A condition wait that has its mutex back. */
	if (t->waits && MD_WAITING(m, t->waits)->mutex == object && MD_WAITING(m, t->waits)->retaken == MD_NEVER)
		MD_WAITING(m, t->waits)->retaken = e->ts;
	if (unlikely(!MD_OBJECT(m, object)->pub.first_site))
		o->pub.first_site = md_site(m, e->thread, e->site, o->pub.kind);
	if (!m->processes[e->process].full[o->pub.kind]) {
		/* Releases are not recorded: the one who took it is blamed until another one does. */
		if (o->pub.waiters)
			md_blame_from(m, object, e->thread, md_site(m, e->thread, e->site, o->pub.kind), e->ts);
		return;
	}
	number = o->holds ? hold_find(m, e->thread, object) : 0;
	if (number) {
		MD_HOLD(m, number)->depth++;
		return;
	}
	/* Held by another as far as the model knows: the release was not recorded. */
	if (unlikely(o->holds && (mode == PTT_MODE_EXCLUSIVE || MD_HOLD(m, o->holds)->mode == PTT_MODE_EXCLUSIVE)))
		md_drop_holds(m, object);
	if (t->holds && m->flags & PTT_MODEL_EDGES && !m->field_at[e->id][MD_WAIT_NS].number)
		md_edges(m, e, object, mode, false);
	if (o->pub.waiters)
		md_share(o, e->ts);
	/* Its release will want to add to this. */
	__builtin_prefetch(&MD_PAIR(m, pair)->sums.hold_n, 1);
	number = m->free_hold;
	if (number)
		m->free_hold = MD_HOLD(m, number)->thread_next;
	else
		number = md_new(m, &m->holds);
	if (!number)
		return;
	h = MD_HOLD(m, number);
	*h = (struct md_hold){
		.since = e->ts,
		.share = o->share,
		.address = e->object,
		.thread = e->thread,
		.object = object,
		.pair = pair,
		.site = md_site(m, e->thread, e->site, o->pub.kind),
		.depth = 1,
		.max_waiters = o->pub.waiters,
		.thread_next = t->holds,
		.object_next = o->holds,
		.mode = mode,
		.thread_place = take_place(&t->places),
		.object_place = take_place(&o->places),
	};
	if (o->holds)
		MD_HOLD(m, o->holds)->object_prev = number;
	o->holds = t->holds = number;
	o->pub.holders++;
	o->pub.holder = e->thread;
	t->pub.held++;
}

void md_release(struct ptt_model *m, const struct md_event *e)
{
	uint32_t hold = MD_THREAD(m, e->thread)->holds, kind = e->id >> 6, object, pair;
	struct md_object *o;

	/* Most threads release what they took last: that needs no search for the object. */
	while (hold && (MD_HOLD(m, hold)->address != e->object ||
			MD_OBJECT(m, MD_HOLD(m, hold)->object)->pub.kind != kind))
		hold = MD_HOLD(m, hold)->thread_next;
	if (hold) {
		object = MD_HOLD(m, hold)->object;
		MD_OBJECT(m, object)->pub.last_ns = e->ts;
	} else {
		/* A lock may be released by a thread that did not take it, if its kind does not look. */
		object = md_object(m, e->thread, kind, e->object, e->ts, &pair);
		hold = MD_OBJECT(m, object)->holds;
	}
	o = MD_OBJECT(m, object);
	if (!hold) {
		o->named = false;
		o->held_site = 0;
		o->release_ts = e->ts;
		o->release_thread = e->thread;
		o->release_site = md_site(m, e->thread, e->site, o->pub.kind);
		return;
	}
	if (--MD_HOLD(m, hold)->depth == 0)
		hold_end(m, hold, e);
}

void md_hold_open_rows(struct ptt_model *m, const int64_t *ends)
{
	for (uint32_t i = 1; i < m->objects.count; i++) {
		struct md_object *o = MD_OBJECT(m, i);
		int64_t end = ends[o->pub.process];

		md_close_tail(m, o, end);
		if (o->pub.waiters)
			md_share(o, end);
		for (uint32_t hold = o->holds; hold; hold = MD_HOLD(m, hold)->object_next) {
			const struct md_hold *h = MD_HOLD(m, hold);

			hold_row(m, h, end, 0, true);
			account(m, h, end);
			if (o->share != h->share)
				md_charge(m, md_blame(m, i, h->thread, h->site), (int64_t)(o->share - h->share));
		}
	}
}

/* ---- corrections of blame ---- */

void md_unblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint32_t holders = o->pub.holders > 1 ? o->pub.holders : 1;
	int64_t high = end;

	/* What is not yet charged is made smaller, what is, is given back. */
	for (uint32_t hold = o->holds; hold; hold = MD_HOLD(m, hold)->object_next) {
		struct md_hold *h = MD_HOLD(m, hold);
		int64_t from = h->since > start ? h->since : start;

		if (end > from)
			h->share += (uint64_t)(end - from) / holders;
		if (h->since < high)
			high = h->since;
	}
	if (o->log) {
		const struct md_log *log = MD_LOG_OF(m, o);

		for (uint32_t i = 0; i < MD_LOG && i < log->count && high > start; i++) {
			const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];
			int64_t from = entry->since > start ? entry->since : start;

			/* whoever is only named may yet tell of another site: charged then */
			if (high > from && !i && o->named)
				o->tail_share += (uint64_t)(high - from);
			else if (high > from && entry->thread)
				md_charge(m, md_blame(m, object, entry->thread, entry->site), from - high);
			high = entry->since < high ? entry->since : high;
		}
	}
}

void md_reblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end)
{
	struct md_object *o = MD_OBJECT(m, object);
	const struct md_log *log = MD_LOG_OF(m, o);
	int64_t high = end;
	uint32_t blame = 0;

	for (uint32_t i = 0; o->log && i < MD_LOG && i < log->count && high > start; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];
		int64_t from = entry->since > start ? entry->since : start;

		if (!entry->thread)
			continue;
		blame = md_blame(m, object, entry->thread, entry->site);
		if (high > from)
			md_charge(m, blame, high - from);
		high = entry->since < high ? entry->since : high;
	}
	if (high > start)
		md_charge(m, blame, high - start);
}

/* ---- edges ---- */

/* Keeps in edge->guard what is in the thread's hand this time too, besides the held lock itself. */
static void guard(const struct ptt_model *m, struct ptt_model_edge *edge, uint32_t thread, bool first)
{
	uint32_t kept = 0;

	if (first) {
		for (uint32_t i = MD_THREAD(m, thread)->holds; i && kept < 4; i = MD_HOLD(m, i)->thread_next)
			if (MD_HOLD(m, i)->object != edge->held)
				edge->guard[kept++] = MD_HOLD(m, i)->object;
		return;
	}
	for (uint32_t i = 0; i < 4 && edge->guard[i]; i++)
		if (hold_find(m, thread, edge->guard[i]))
			edge->guard[kept++] = edge->guard[i];
	while (kept < 4)
		edge->guard[kept++] = 0;
}

/* Taken by a routine that would not have waited for ever. */
static bool tried(uint32_t id)
{
	return id == (NPTL_DOMAIN_MUTEX << 6 | NPTL_EV_MUTEX_TAKEN_TRIED) ||
	       id == (NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_READ_TRIED) ||
	       id == (NPTL_DOMAIN_RWLOCK << 6 | NPTL_EV_RWLOCK_TAKEN_WRITE_TRIED) ||
	       id == (NPTL_DOMAIN_SPIN << 6 | NPTL_EV_SPIN_TAKEN_TRIED);
}

void md_edges(struct ptt_model *m, const struct md_event *e, uint32_t object, uint8_t mode, bool blocked)
{
	const struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t site = md_site(m, e->thread, e->site, MD_OBJECT(m, object)->pub.kind);

	for (uint32_t i = t->holds; i; i = MD_HOLD(m, i)->thread_next) {
		const struct md_hold *h = MD_HOLD(m, i);
		struct ptt_model_edge *edge;
		bool made;

		if (h->object == object)
			continue;
		edge = &((struct ptt_model_edge *)(void *)m->edges.items)[md_lookup(
			m, &m->edge_of, &m->edges, (uint64_t)h->object << 32 | object, (uint64_t)h->mode << 1 | mode,
			&made)];
		if (made)
			*edge = (struct ptt_model_edge){
				.first_ns = e->ts, .held = h->object, .wanted = object, .held_site = h->site,
				.wanted_site = site, .thread = e->thread, .threads = 1, .held_mode = h->mode,
				.wanted_mode = mode, .tries = 1,
			};
		guard(m, edge, e->thread, made);
		edge->n++;
		edge->blocked |= blocked;
		edge->tries &= t->trying || tried(e->id);
		if (edge->thread != e->thread)
			edge->threads = 2;
	}
}
