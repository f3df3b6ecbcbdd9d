/* SPDX-License-Identifier: MIT */
/* objects.c - objects and their generations, call sites, and who used what. */
#include "holds.h"

uint32_t md_lookup(struct ptt_model *m, struct rd_map *map, struct rd_pool *pool, uint64_t a, uint64_t b, bool *made)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	*made = false;
	if (unlikely(!e)) {
		m->error = -ENOMEM;
		return 0;
	}
	if (unlikely(!e->value)) {
		e->value = md_new(m, pool);
		*made = e->value != 0;
	}
	return (uint32_t)e->value;
}

uint32_t md_pair(struct ptt_model *m, uint32_t thread, uint32_t object)
{
	bool made;
	uint32_t number = md_lookup(m, &m->pair_of, &m->pairs, thread, object, &made);

	if (made) {
		MD_PAIR(m, number)->thread = thread;
		MD_PAIR(m, number)->object = object;
	}
	return number;
}

static uint64_t object_key(uint64_t address, uint32_t kind)
{
	return (address & PTT_OBJECT_MASK) | (uint64_t)kind << 48;
}

static uint32_t object_new(struct ptt_model *m, uint32_t process, uint64_t address, uint32_t kind, int64_t ts,
			   uint32_t before)
{
	uint32_t number = md_new(m, &m->objects);
	struct md_object *o = MD_OBJECT(m, number);

	if (!number)
		return 0;
	o->pub.address = address;
	o->pub.process = process;
	o->pub.kind = kind;
	o->pub.first_ns = o->pub.last_ns = ts;
	o->pub.generation = before ? MD_OBJECT(m, before)->pub.generation + 1 : 1;
	o->first = before ? MD_OBJECT(m, before)->first : number;
	o->counted = !m->only_objects.count || rd_map_find(&m->only_objects, process, address) ||
		     rd_map_find(&m->only_objects, RD_NONE, address);
	return number;
}

/* The object that lives at an address now; the first use after a destruction is of a new one. */
static uint32_t object_find(struct ptt_model *m, uint32_t process, uint64_t address, uint32_t kind, int64_t ts)
{
	uint32_t space = process;
	uint64_t place = address;
	struct rd_entry *e;

	if (m->shared_count)
		md_find_shared(m, &space, &place);
	e = rd_map_put(&m->object_of, object_key(place, kind), space);
	if (unlikely(!e)) {
		m->error = -ENOMEM;
		return 0;
	}
	if (e->value && MD_OBJECT(m, e->value)->pub.process != process)
		MD_OBJECT(m, e->value)->pub.flags |= PTT_OBJECT_SHARED;
	if (!e->value)
		e->value = object_new(m, process, address, kind, ts, 0);
	else if (MD_OBJECT(m, e->value)->pub.flags & PTT_OBJECT_ENDED)
		e->value = object_new(m, process, address, kind, ts, (uint32_t)e->value);
	return (uint32_t)e->value;
}

#define PAIR_OBJECT 1u
#define PAIR_ADDRESS 2u

/* Counts the threads that use any generation of an object, at the first of them. */
static void count_at_address(struct ptt_model *m, uint32_t thread, uint32_t first)
{
	struct md_object *o = MD_OBJECT(m, first);
	uint64_t bit = thread < 64 ? UINT64_C(1) << thread : 0;
	uint32_t pair = bit ? 0 : md_pair(m, thread, first);

	if (bit ? o->address_users & bit : MD_PAIR(m, pair)->used & PAIR_ADDRESS)
		return;
	o->address_users |= bit;
	MD_PAIR(m, pair)->used |= PAIR_ADDRESS;
	o->address_threads++;
}

uint32_t md_user(struct ptt_model *m, uint32_t thread, uint32_t object)
{
	struct md_object *o = MD_OBJECT(m, object);
	uint64_t bit = thread < 64 ? UINT64_C(1) << thread : 0;
	uint32_t pair = 0;

	if (!bit || m->flags & PTT_MODEL_PAIRS_OF)
		pair = md_pair(m, thread, object);
	if (bit ? o->users & bit : MD_PAIR(m, pair)->used & PAIR_OBJECT)
		return pair;
	o->users |= bit;
	MD_PAIR(m, pair)->used |= PAIR_OBJECT;
	o->pub.threads++;
	count_at_address(m, thread, o->first);
	return pair;
}

uint32_t md_object(struct ptt_model *m, uint32_t thread, uint32_t kind, uint64_t address, int64_t ts, uint32_t *pair)
{
	struct md_thread *t = MD_THREAD(m, thread);
	uint64_t key = object_key(address, kind);
	struct md_cached *cached = &t->cache[(key >> 3 ^ key >> 6 ^ key >> 12) % MD_CACHE];

	if (unlikely(cached->key != key || !cached->object ||
		     MD_OBJECT(m, cached->object)->pub.flags & PTT_OBJECT_ENDED)) {
		uint32_t object = object_find(m, t->pub.process, address, kind, ts);

		*cached = (struct md_cached){ key, object, md_user(m, thread, object) };
	}
	*pair = cached->pair;
	MD_OBJECT(m, cached->object)->pub.last_ns = ts;
	return cached->object;
}

uint32_t md_site(struct ptt_model *m, uint32_t thread, uint64_t site, uint32_t kind)
{
	struct md_thread *t = MD_THREAD(m, thread);
	uint32_t at = (site ^ site >> 3 ^ site >> 8) % MD_SITES;
	bool made;
	struct md_site *s;

	if (!site)
		return 0;
	if (likely(t->site_key[at] == site))
		return t->site[at];
	t->site_key[at] = site;
	t->site[at] = md_lookup(m, &m->site_of, &m->sites, site, t->pub.process, &made);
	s = MD_SITE(m, t->site[at]);
	if (made) {
		s->pub.address = site;
		s->pub.process = t->pub.process;
		s->pub.kind = kind;
		s->counted = !m->only_sites.count || rd_map_find(&m->only_sites, t->pub.process, site) ||
			     rd_map_find(&m->only_sites, RD_NONE, site & PTT_SITE_ADDRESS);
	}
	return t->site[at];
}

bool md_counted(const struct ptt_model *m, uint32_t thread, uint32_t object, uint32_t site)
{
	return MD_THREAD(m, thread)->counted && MD_OBJECT(m, object)->counted &&
	       (!m->only_sites.count || MD_SITE(m, site)->counted);
}

static uint32_t attributes(const struct ptt_model *m, const struct md_event *e, uint32_t kind)
{
	switch (kind) {
	case PTT_KIND_MUTEX:
		return (uint32_t)(md_number(m, e, MD_KIND, 0) | md_number(m, e, MD_PROTOCOL, 0) << 8 |
				  md_number(m, e, MD_ROBUST, 0) << 16);
	case PTT_KIND_RWLOCK:
		return (uint32_t)md_number(m, e, MD_PREFERENCE, 0);
	case PTT_KIND_COND:
		return (uint32_t)md_number(m, e, MD_CLOCK, 0);
	case PTT_KIND_BARRIER:
		return (uint32_t)md_number(m, e, MD_COUNT, 0);
	case PTT_KIND_SEM:
		return (uint32_t)md_number(m, e, MD_VALUE, 0);
	}
	return 0;
}

void md_init(struct ptt_model *m, const struct md_event *e, uint32_t kind)
{
	uint32_t pair, object = md_object(m, e->thread, kind, e->object, e->ts, &pair);
	struct md_object *o = MD_OBJECT(m, object);

	/* A named semaphore that is open already is the same one again. */
	if (o->opens && kind == PTT_KIND_SEM && !m->field_at[e->id][MD_SHARED].number) {
		o->opens++;
		return;
	}
	/* Made anew where another was: its memory was used for something else, or was it forgotten to be destroyed? */
	if (o->pub.first_ns != e->ts || o->pub.init_site || o->holds || o->waits) {
		md_drop_holds(m, object, e->ts);
		o->pub.flags |= PTT_OBJECT_ENDED;
		object = md_object(m, e->thread, kind, e->object, e->ts, &pair);
		o = MD_OBJECT(m, object);
	}
	o->pub.init_site = md_site(m, e->thread, e->site, kind);
	if (kind == PTT_KIND_SEM && !m->field_at[e->id][MD_SHARED].number)
		o->opens = 1;
	o->pub.flags |= PTT_OBJECT_MADE;
	o->pub.attributes = attributes(m, e, kind);
	if (md_number(m, e, MD_SHARED, 0))
		o->pub.flags |= PTT_OBJECT_SHARED;
}

void md_destroy(struct ptt_model *m, const struct md_event *e, uint32_t kind)
{
	uint32_t pair, object = md_object(m, e->thread, kind, e->object, e->ts, &pair);
	struct md_object *o = MD_OBJECT(m, object);

	if (o->opens > 1) {
		o->opens--;
		return;
	}
	md_drop_holds(m, object, e->ts);
	o->pub.flags |= PTT_OBJECT_ENDED;
}

void md_lll_purpose(struct ptt_model *m, const struct md_event *e)
{
	uint32_t pair, object = md_object(m, e->thread, PTT_KIND_LLL, e->object, e->ts, &pair);
	struct ptt_model_object *o = &MD_OBJECT(m, object)->pub;

	o->flags &= (1u << PTT_OBJECT_LLL_SHIFT) - 1;
	o->flags |= (uint32_t)md_number(m, e, MD_PURPOSE, 0) << PTT_OBJECT_LLL_SHIFT;
}
