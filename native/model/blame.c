/* SPDX-License-Identifier: MIT */
/* blame.c - whom the waits for a lock are charged to. */
/*
 * While threads wait for a lock, each moment of their waiting is divided among those who hold it: `share` of an
 * object is the integral of waiters / holders over time, so what a hold has cost is the difference of two of its values.
 * Between a release and the next acquisition, whoever held it last goes on being blamed: `tail`.
 */
#include "internal.h"

uint32_t md_blame(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site)
{
	bool made;
	uint32_t number = md_lookup(m, &m->blame_of, &m->blames, (uint64_t)object << 32 | thread, site, &made);

	if (made) {
		struct ptt_model_blame *b = MD_BLAME(m, number);

		b->object = object;
		b->thread = thread;
		b->site = site;
	}
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

void md_share(const struct ptt_model *m, struct md_object *o, int64_t ts)
{
	if (o->pub.waiters)
		o->share += (uint64_t)md_portion(m, o->share_ts, ts, o->pub.waiters, o->pub.holders);
	o->share_ts = ts;
}

void md_close_tail(struct ptt_model *m, struct md_object *o, int64_t ts)
{
	if (!o->tail)
		return;
	md_share(m, o, ts);
	md_charge(m, o->tail, (int64_t)(o->share - o->tail_share));
	o->tail = 0;
}

void md_blame_from(struct ptt_model *m, uint32_t object, uint32_t thread, uint32_t site, int64_t ts)
{
	struct md_object *o = MD_OBJECT(m, object);
	struct md_log *log;

	md_close_tail(m, o, ts);
	md_share(m, o, ts);
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

/* ---- corrections of blame ---- */

void md_unblame(struct ptt_model *m, uint32_t object, int64_t start, int64_t end)
{
	struct md_object *o = MD_OBJECT(m, object);
	int64_t high = end;

	/* What is not yet charged is made smaller, what is, is given back. */
	for (uint32_t hold = o->holds; hold; hold = MD_HOLD(m, hold)->object_next) {
		struct md_hold *h = MD_HOLD(m, hold);
		int64_t from = h->since > start ? h->since : start;

		h->share += (uint64_t)md_portion(m, from, end, 1, o->pub.holders);
		if (h->since < high)
			high = h->since;
	}
	if (o->log) {
		const struct md_log *log = MD_LOG_OF(m, o);

		for (uint32_t i = 0; i < MD_LOG && i < log->count && high > start; i++) {
			const struct md_log_entry *entry = &log->entry[(log->count - 1 - i) % MD_LOG];
			int64_t from = entry->since > start ? entry->since : start;
			int64_t part = md_portion(m, from, high, 1, 1);

			/* whoever is only named may yet tell of another site: charged then */
			if (!i && o->named)
				o->tail_share += (uint64_t)part;
			else if (part && entry->thread)
				md_charge(m, md_blame(m, object, entry->thread, entry->site), -part);
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
		md_charge(m, blame, md_portion(m, from, high, 1, 1));
		high = entry->since < high ? entry->since : high;
	}
	md_charge(m, blame, md_portion(m, start, high, 1, 1));
}
