/* SPDX-License-Identifier: MIT */
/* tables.c - the tables of the model: rows, elements by key, call sites, and histograms of waits. */
#include "../sums.h"

void *md_row(struct ptt_model *m, struct md_rows *rows)
{
	void *row;

	if (rows->count == rows->room) {
		uint64_t room = rows->room ? rows->room * 2 : 4096;
		void *bigger = realloc(rows->items, room * rows->size);

		if (!bigger) {
			m->t.error = -ENOMEM;
			return NULL;
		}
		rows->items = bigger;
		rows->room = room;
	}
	row = rows->items + rows->count++ * rows->size;
	memset(row, 0, rows->size);
	return row;
}

uint32_t md_lookup(struct ptt_model *m, struct rd_map *map, struct rd_pool *pool, uint64_t a, uint64_t b, bool *made)
{
	struct rd_entry *e = rd_map_put(map, a, b);

	*made = false;
	if (unlikely(!e)) {
		m->t.error = -ENOMEM;
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

uint32_t md_site(struct ptt_model *m, uint32_t thread, uint64_t site, uint32_t kind)
{
	struct md_cache *t = MD_CACHE_OF(m, thread);
	uint32_t process = MD_THREAD(m, thread)->pub.process;
	uint32_t at = (site ^ site >> 3 ^ site >> 8) % MD_SITES;
	const struct rd_entry *use;
	bool made;
	struct md_site *s;

	if (!site)
		return 0;
	if (likely(t->site_key[at] == site))
		return t->site[at];
	t->site_key[at] = site;
	t->site[at] = md_lookup(m, &m->site_of, &m->sites, site, process, &made);
	s = MD_SITE(m, t->site[at]);
	if (made) {
		s->pub.address = site;
		s->pub.process = process;
		s->pub.kind = kind;
		use = m->site_uses.count ? rd_map_find(&m->site_uses, site, process) : NULL;
		s->use = use ? (uint8_t)use->value : 0;
		s->counted = !m->only_sites.count || rd_map_find(&m->only_sites, process, site) ||
			     rd_map_find(&m->only_sites, RD_NONE, site & PTT_SITE_ADDRESS);
	}
	return t->site[at];
}

bool md_counted(const struct ptt_model *m, uint32_t thread, uint32_t object, uint32_t site)
{
	uint32_t number = MD_THREAD(m, thread)->pub.number;

	if (unlikely(m->only_threads) && (number >= m->t.known_count || !m->t.known[number].allowed))
		return false;
	return MD_OBJECT(m, object)->counted &&
	       (!m->only_sites.count || MD_SITE(m, site)->counted);
}

/* ---- histograms ---- */

/* 16 buckets an octave: the middle of a bucket is within 3 % of each of its durations. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave, bucket;

	if (ns < 16)
		return (uint32_t)ns;
	octave = 63u - (uint32_t)__builtin_clzll(ns);
	bucket = (octave - 3) * 16 + (uint32_t)(ns >> (octave - 4) & 15);
	return bucket < PTT_BUCKETS ? bucket : PTT_BUCKETS - 1;
}

double ptt_model_bucket_ns(uint32_t bucket)
{
	uint32_t octave = bucket / 16 + 3;
	double step;

	if (bucket < 16)
		return bucket;
	step = (double)(UINT64_C(1) << (octave - 4));
	return (double)(16 + bucket % 16) * step + (step - 1) / 2;
}

void md_histogram_add(struct ptt_model *m, uint32_t *histogram, uint64_t ns)
{
	if (!*histogram)
		*histogram = md_new(m, &m->histograms);
	((uint32_t *)(void *)m->histograms.items)[(uint64_t)*histogram * PTT_BUCKETS + bucket_of(ns)]++;
}
