/* SPDX-License-Identifier: MIT */
/* blame.c - charges waits for a lock to its holders. */
/*
 * While threads wait for a lock, each moment of their waits is divided among its holders. `share` of an object is the integral
 * of waiters / holders over time. So the cost of a hold is the difference of two values of `share`. `held` is the time with any
 * holder. So the part of a wait with a holder is the difference of two values of `held`. While no thread holds the lock, both
 * stand still: a waiter is about to take it. If only waits are recorded, the thread that took the lock last, or that was named
 * as its owner, counts as the holder: `tail`.
 */
#include "../sums.h"

uint32_t md_blame(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site)
{
	bool made;
	uint32_t number = md_lookup(m, &m->blame_of, &m->blames, (uint64_t)object << 32 | thread, site, &made);

	if (made)
		*MD_BLAME(m, number) = (struct ptt_model_blame){
			.object = object, .thread = thread, .site = site & ~MD_RELEASED,
			.released = (site & MD_RELEASED) != 0,
		};
	return number;
}

void md_charge(struct ptt_model *m, uint32_t blame, int64_t ns)
{
	struct ptt_model_blame *b = MD_BLAME(m, blame);

	if (!ns || !blame || !MD_OBJECT(m, b->object)->counted)
		return;
	b->caused_ns += (uint64_t)ns;
	if (m->flags & PTT_MODEL_PAIRS_OF)
		MD_PAIR(m, md_pair(m, b->thread, b->object))->caused_ns += (uint64_t)ns;
	MD_THREAD(m, b->thread)->pub.caused_ns += (uint64_t)ns;
	MD_SITE(m, b->site)->pub.caused_ns += (uint64_t)ns;
}

/* The part that two intervals share with each other and with the window, in ns. */
static uint64_t overlap(const struct ptt_model *m, int64_t a, int64_t a_end, int64_t b, int64_t b_end)
{
	return (uint64_t)md_portion(m, a > b ? a : b, a_end < b_end ? a_end : b_end, 1, 1);
}

void md_share(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	uint32_t holders = o->pub.holders ? o->pub.holders : o->tail != 0;

	if (ts <= o->share_ts)
		return;
	if (md_sharing(o) && holders) {
		int64_t ns = md_portion(m, o->share_ts, ts, 1, 1);
		int64_t part = md_portion(m, o->share_ts, ts, md_sharing(o), holders);
		int64_t rest = ns * md_sharing(o) - part * holders;

		o->held_all += (uint64_t)(ts - o->share_ts);
		o->held += (uint64_t)ns;
		o->share += (uint64_t)part;
		/* A single holder gets the remainder of the division, so that the parts add up. */
		if (rest)
			md_hold_add(MD_HOLD(m, o->pub.holds), (int64_t)rest);
	}
	o->share_ts = ts;
}

uint32_t md_log_of(struct ptt_model *m, struct md_object *o)
{
	if (!o->log)
		o->log = md_new(m, &m->logs);
	return o->log;
}

void md_log_add(struct ptt_model *m, struct md_object *o, struct md_log_entry entry)
{
	struct md_log *log = MD_LOG_OF(m, o);

	if (o->log)
		log->entry[log->count++ % MD_LOG] = entry;
}

/* ---- locks without recorded holds ---- */

void md_close_tail(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	const struct ptt_model_blame *b = MD_BLAME(m, o->tail);

	if (!o->tail)
		return;
	md_share(m, o, ts);
	md_charge(m, o->tail, (int64_t)(o->share - o->tail_share));
	md_log_add(m, o, (struct md_log_entry){ o->tail_since, ts, b->thread, b->site });
	o->tail = 0;
}

void md_blame_from(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);

	md_close_tail(m, o, ts);
	md_share(m, o, ts);
	o->tail = md_blame(m, object, thread, site);
	o->tail_share = o->share;
	o->tail_since = ts;
}

void md_claim(struct ptt_model *m, struct md_wait *w, uint32_t thread, uint32_t site, int64_t ts)
{
	const struct md_object *o = MD_OBJECT(m, w->object);
	int64_t from = o->pub.releaser && o->pub.release_ns > w->since ? o->pub.release_ns : w->since;

	int64_t ns = md_portion(m, from, ts, 1, 1);

	if (!w->counted || !ns)
		return;
	w->held -= (uint64_t)ns;
	md_charge(m, md_blame(m, w->object, thread, site), ns);
}

/* The named owner records its acquisition only now: its hold begins here, and the tail is dropped. */
static void drop_tail(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	uint64_t sum = 0;

	md_share(m, o, ts);
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next)
		if (MD_WAITING(m, i)->counted)
			sum += overlap(m, MD_WAITING(m, i)->since, ts, o->tail_since, ts);
	/* A wait for the tail was reported already. */
	if (sum != o->share - o->tail_share)
		return;
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next)
		MD_WAITING(m, i)->held += overlap(m, MD_WAITING(m, i)->since, ts, o->tail_since, ts);
	o->tail = 0;
}

void md_no_owner_follows(struct ptt_model *m, struct md_object *o)
{
	if (likely(!o->owner_follows))
		return;
	o->owner_follows = false;
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next)
		MD_WAITING(m, i)->owner_follows = false;
}

void md_place_owner(struct ptt_model *m, const struct tk_event *e, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint32_t site;

	if (!tk_knows_holds(TK_PROCESS(&m->t, e->process), o->pub.kind, e->object)) {
		md_no_owner_follows(m, o);
		return;
	}
	if (o->tail && MD_BLAME(m, o->tail)->thread == e->thread)
		drop_tail(m, o, e->ts);
	site = md_site(m, e->thread, e->site, o->pub.kind);
	for (uint32_t i = o->pub.waits; i; i = MD_WAITING(m, i)->object_next) {
		struct md_wait *w = MD_WAITING(m, i);

		if (!w->owner_follows || w->thread == e->thread || (w->owner && w->owner != e->thread))
			continue;
		w->owner = e->thread;
		w->owner_site = site;
		w->owner_stack = e->stack;
	}
	md_no_owner_follows(m, o);
}

/* ---- corrections ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes up to @most ns from holders and the tail before they are charged. @end: their beginning. Return: the rest of @most. */
static uint64_t take_from_holders(struct ptt_model *m, struct md_object *o, int64_t start, int64_t *end, uint64_t most)
{
	int64_t first = *end;
	uint64_t ns, left;

	for (uint32_t hold = o->pub.holds; hold; hold = MD_HOLD(m, hold)->object_next)
		if (MD_HOLD(m, hold)->since < first)
			first = MD_HOLD(m, hold)->since;
	if (o->tail && o->tail_since < first)
		first = o->tail_since;
	ns = left = least(overlap(m, first, *end, start, *end), most);
	for (uint32_t hold = o->pub.holds; hold; hold = MD_HOLD(m, hold)->object_next) {
		struct md_hold *h = MD_HOLD(m, hold);
		int64_t from = h->since > start ? h->since : start;
		uint64_t part = (uint64_t)md_portion(m, from, *end, 1, o->pub.holders);

		part = least(least(part, left), o->share - h->share);
		md_hold_add(h, -(int64_t)part);
		left -= part;
	}
	if (o->tail) {
		uint64_t part = least(left, o->share - o->tail_share);

		o->tail_share += part;
		left -= part;
	}
	/* The remainder of the division. */
	if (o->pub.holds) {
		struct md_hold *h = MD_HOLD(m, o->pub.holds);
		uint64_t part = least(left, o->share - h->share);

		md_hold_add(h, -(int64_t)part);
		left -= part;
	}
	o->excess += left;
	*end = first;
	return most - ns;
}

uint64_t md_take_back(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t most)
{
	struct md_object *o = MD_OBJECT(m, object);
	const struct md_log *log = MD_LOG_OF(m, o);
	uint64_t left = take_from_holders(m, o, start, &end, most);

	for (uint32_t i = 0; o->log && i < MD_LOG && i < log->count && left && end > start; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];
		uint64_t part = least(overlap(m, entry->since, entry->ended, start, end), left);
		uint32_t blame;

		if (entry->ended <= start)
			break;
		if (!part)
			continue;
		blame = md_blame(m, object, entry->thread, entry->site);
		left -= part;
		if (part > MD_BLAME(m, blame)->caused_ns) {
			o->excess += part - MD_BLAME(m, blame)->caused_ns;
			part = MD_BLAME(m, blame)->caused_ns;
		}
		md_charge(m, blame, -(int64_t)part);
		end = entry->since;
	}
	return most - left;
}

void md_unblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end, uint64_t ns)
{
	MD_OBJECT(m, object)->excess += ns - md_take_back(m, object, start, end, ns);
}

uint64_t md_blame_past(struct ptt_model *m, uint32_t object, uint32_t thread, int64_t start, int64_t end)
{
	struct md_object *o = MD_OBJECT(m, object);
	const struct md_log *log = MD_LOG_OF(m, o);
	uint64_t sum = 0;

	for (uint32_t i = 0; o->log && i < MD_LOG && i < log->count; i++) {
		const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];
		/* Several threads may have held it at once: each moment is charged once. */
		uint64_t part = overlap(m, entry->since, entry->ended, start, end);

		if (entry->ended <= start)
			break;
		if (!part || entry->thread == thread)
			continue;
		md_charge(m, md_blame(m, object, entry->thread, entry->site), (int64_t)part);
		sum += part;
		end = entry->since;
	}
	return sum;
}

void md_settle(struct ptt_model *m)
{
	struct ptt_model_blame *b = MD_BLAME(m, 0);

	for (uint32_t i = 1; i < m->blames.count; i++)
		MD_OBJECT(m, b[i].object)->blamed += b[i].caused_ns;
	for (uint32_t i = 1; i < m->blames.count; i++) {
		struct md_object *o = MD_OBJECT(m, b[i].object);
		uint64_t part;

		if (!o->excess || !o->blamed)
			continue;
		part = (uint64_t)((unsigned __int128)b[i].caused_ns * least(o->excess, o->blamed) / o->blamed);
		o->blamed -= b[i].caused_ns;
		o->excess -= part;
		md_charge(m, i, -(int64_t)part);
	}
}
