/* SPDX-License-Identifier: MIT */
/* snapshot.c - saves the state of a model in a file, to read a trace from its middle. */
/*
 * A snapshot has the present waits and holds, and all identities. It lacks some sums, because a count starts from there. It
 * contains the tables as they lie in memory, for the same build on the same machine. Its checksum detects damage, but not
 * manipulation. So it must come from a place where no other user writes.
 */
#include <stddef.h>
#include <unistd.h>

#include "../../../ring/layout/crc32c.h"
#include "../sums.h"

#define SNAPSHOT_MAGIC UINT64_C(0x4c45444f4d545450)
#define BUFFERED (1u << 16)

/* Follows the data. */
struct snapshot_end {
	uint64_t magic;
	uint64_t bytes; /* of the data */
	uint32_t version;
	uint32_t sizes; /* a sum over the sizes of elements, which differs between builds */
	uint32_t crc;
	uint32_t reserved;
};

/* An entry of a map, and numbers of the model. */
struct snapshot_entry {
	uint64_t a, b, value;
};

struct snapshot_numbers {
	uint64_t wait_id;
	uint32_t free_hold, free_wait, free_wakeup, known_count, process_count, reserved;
};

static uint32_t sizes(void)
{
	return (uint32_t)(sizeof(struct md_object) + 3 * sizeof(struct md_site) + 5 * sizeof(struct md_thread) +
			  7 * sizeof(struct ptt_model_pair) + 11 * sizeof(struct ptt_model_blame) +
			  13 * sizeof(struct md_hold) + 17 * sizeof(struct md_wait) + 19 * sizeof(struct md_log) +
			  23 * sizeof(struct tk_waking) + 29 * sizeof(struct md_wakeup) + 31 * sizeof(struct tk_known) +
			  37 * sizeof(struct tk_process));
}

#define KEPT_POOLS(m)                                                                                           \
	{ &(m)->t.threads, &(m)->t.objects, &(m)->sites, &(m)->pairs, &(m)->blames, &(m)->t.holds, &(m)->t.waits, \
	  &(m)->t.wakeups, &(m)->t.wakings, &(m)->logs }
#define KEPT_MAPS(m)                                                                                            \
	{ &(m)->t.object_of, &(m)->site_of, &(m)->pair_of, &(m)->blame_of, &(m)->t.pthread_of, &(m)->t.serial_of, \
	  &(m)->t.tid_of, &(m)->families, &(m)->made_of }

/* ---- writing ---- */

struct writer {
	uint8_t *buffer;
	size_t used;
	uint64_t bytes;
	uint32_t crc;
	int fd;
	int err;
};

static void flush(struct writer *w)
{
	size_t done = 0;

	w->crc = ptt_crc32c(w->crc, w->buffer, w->used);
	while (done < w->used && !w->err) {
		ssize_t n = write(w->fd, w->buffer + done, w->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			w->err = n < 0 ? -errno : -EIO;
		else
			done += (size_t)n;
	}
	w->bytes += w->used;
	w->used = 0;
}

static void put(struct writer *w, const void *data, size_t size)
{
	const uint8_t *from = data;

	while (size) {
		size_t part = size < BUFFERED - w->used ? size : BUFFERED - w->used;

		memcpy(w->buffer + w->used, from, part);
		w->used += part;
		from += part;
		size -= part;
		if (w->used == BUFFERED)
			flush(w);
	}
}

static void put_number(struct writer *w, uint64_t number)
{
	put(w, &number, sizeof(number));
}

static void put_map(struct writer *w, const struct rd_map *map)
{
	const struct rd_entry *e;

	put_number(w, map->count);
	for (uint64_t i = 0; (e = rd_map_next(map, &i));)
		put(w, &(struct snapshot_entry){ e->a, e->b, e->value }, sizeof(struct snapshot_entry));
}

static void put_all(struct writer *w, const struct ptt_model *m)
{
	const struct rd_pool *pools[] = KEPT_POOLS(m);
	const struct rd_map *maps[] = KEPT_MAPS(m);
	struct snapshot_numbers numbers = {
		.wait_id = m->t.wait_id, .free_hold = m->t.free_hold, .free_wait = m->t.free_wait,
		.free_wakeup = m->t.free_wakeup, .known_count = m->t.known_count, .process_count = m->t.process_count,
	};

	put(w, &numbers, sizeof(numbers));
	put(w, m->t.known, m->t.known_count * sizeof(*m->t.known));
	put(w, m->t.processes, m->t.process_count * sizeof(struct tk_process));
	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++) {
		put_number(w, pools[i]->count);
		put(w, pools[i]->items + pools[i]->size, (pools[i]->count - 1) * pools[i]->size);
	}
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		put_map(w, maps[i]);
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		const struct md_thread *t = MD_THREAD(m, i);

		put_number(w, t->switch_count);
		put(w, t->switches, t->switch_count * sizeof(*t->switches));
	}
}

int64_t ptt_model_save(const struct ptt_model *m, int fd)
{
	struct writer w = { .buffer = malloc(BUFFERED), .fd = fd };
	struct snapshot_end end = { .magic = SNAPSHOT_MAGIC, .version = PTT_MODEL_VERSION, .sizes = sizes() };

	if (!w.buffer)
		return -ENOMEM;
	put_all(&w, m);
	flush(&w);
	end.bytes = w.bytes;
	end.crc = w.crc;
	put(&w, &end, sizeof(end));
	flush(&w);
	free(w.buffer);
	return w.err ? w.err : (int64_t)w.bytes;
}

/* ---- reading ---- */

struct taker {
	const uint8_t *at;
	uint64_t left;
	int err;
};

static void take(struct taker *t, void *out, uint64_t size)
{
	if (t->err || size > t->left) {
		t->err = t->err ? t->err : -EBADMSG;
		return;
	}
	memcpy(out, t->at, size);
	t->at += size;
	t->left -= size;
}

/* Reads a count of elements of a size, and checks that the data has as many. */
static uint64_t take_count(struct taker *t, uint64_t size)
{
	uint64_t count = 0;

	take(t, &count, sizeof(count));
	if (!t->err && count && (count - 1) > t->left / size)
		t->err = -EBADMSG;
	return t->err ? 0 : count;
}

static void take_pool(struct taker *t, struct rd_pool *pool)
{
	uint64_t count = take_count(t, pool->size);

	if (!count || rd_pool_reach(pool, count) < 0) {
		t->err = t->err ? t->err : count ? -ENOMEM : -EBADMSG;
		count = 1;
	}
	take(t, pool->items + pool->size, (count - 1) * pool->size);
	pool->count = (uint32_t)count;
}

static void take_map(struct taker *t, struct rd_map *map)
{
	uint64_t count = 0;

	rd_map_free(map);
	take(t, &count, sizeof(count));
	for (uint64_t i = 0; i < count && !t->err; i++) {
		struct snapshot_entry entry;
		struct rd_entry *e;

		take(t, &entry, sizeof(entry));
		e = t->err ? NULL : rd_map_put(map, entry.a, entry.b);
		if (e)
			e->value = entry.value;
		else
			t->err = t->err ? t->err : -ENOMEM;
	}
}

static void *take_array(struct taker *t, uint64_t count, size_t size)
{
	void *array = t->err || count > t->left / size ? NULL : calloc(count + 1, size);

	if (array)
		take(t, array, count * size);
	else
		t->err = t->err ? t->err : -EBADMSG;
	return array;
}

/* Reads the context switches that are not reported yet. If there are none, md_switches_loaded() has set the last switch. */
static void take_switches(struct taker *t, const struct ptt_model *m, struct md_thread *thread)
{
	uint64_t count = 0;
	struct md_switch *switches;

	take(t, &count, sizeof(count));
	if (!count)
		return;
	switches = take_array(t, count, sizeof(*switches));
	if (!switches || count > UINT32_MAX - 1 || !(m->flags & PTT_MODEL_STATES_OF)) {
		free(switches);
		return;
	}
	free(thread->switches);
	thread->switches = switches;
	thread->switch_count = (uint32_t)count;
	thread->switch_room = (uint32_t)count + 1;
}

static void take_all(struct taker *t, struct ptt_model *m)
{
	struct rd_pool *pools[] = KEPT_POOLS(m);
	struct rd_map *maps[] = KEPT_MAPS(m);
	struct snapshot_numbers numbers = { 0 };

	take(t, &numbers, sizeof(numbers));
	tk_drop_ranges(&m->t);
	free(m->t.known);
	free(m->t.processes);
	m->t.known = take_array(t, numbers.known_count, sizeof(*m->t.known));
	m->t.known_count = m->t.known ? numbers.known_count : 0;
	m->t.processes = take_array(t, numbers.process_count, sizeof(struct tk_process));
	m->t.process_count = m->t.processes ? numbers.process_count : 0;
	for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++)
		take_pool(t, pools[i]);
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		md_switches_loaded(m, MD_THREAD(m, i));
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		take_map(t, maps[i]);
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		take_switches(t, m, MD_THREAD(m, i));
	/* The caches begin empty. */
	m->t.caches.count = m->t.threads.count;
	if (rd_pool_reach(&m->t.caches, m->t.caches.count) < 0)
		t->err = t->err ? t->err : -ENOMEM;
	tk_make_ranges(&m->t);
	m->t.wait_id = numbers.wait_id;
	m->t.free_hold = numbers.free_hold;
	m->t.free_wait = numbers.free_wait;
	m->t.free_wakeup = numbers.free_wakeup;
}

/* ---- sums before the snapshot do not count ---- */

static void forget_objects(struct ptt_model *m)
{
	for (uint32_t i = 1; i < m->t.objects.count; i++) {
		struct md_object *o = MD_OBJECT(m, i);

		o->pub.sums = (struct ptt_sums){ 0 };
		o->pub.wasted = 0;
		o->pub.histogram = 0;
		o->share = o->held = o->tail_share = o->excess = o->blamed = 0;
		for (uint32_t k = o->pub.holds; k; k = MD_HOLD(m, k)->object_next) {
			MD_HOLD(m, k)->share = MD_HOLD(m, k)->cut_share = 0;
			/* The saved model may have had no pair. */
			if (m->flags & PTT_MODEL_PAIRS_OF)
				MD_HOLD(m, k)->pair = md_pair(m, MD_HOLD(m, k)->thread, i);
		}
		for (uint32_t k = o->pub.waits; k; k = MD_WAITING(m, k)->object_next)
			MD_WAITING(m, k)->held = MD_WAITING(m, k)->mutex_held = 0;
	}
}

static void forget_sums(struct ptt_model *m)
{
	forget_objects(m);
	for (uint32_t i = 1; i < m->t.wakeups.count; i++)
		MD_WAKEUP(m, i)->held = 0;
	for (uint32_t i = 1; i < m->sites.count; i++) {
		struct ptt_model_site *s = &MD_SITE(m, i)->pub;

		s->sums = (struct ptt_sums){ 0 };
		s->caused_ns = 0;
		s->histogram = 0;
	}
	for (uint32_t i = 1; i < m->t.threads.count; i++) {
		struct ptt_model_thread *t = &MD_THREAD(m, i)->pub;

		t->sums = (struct ptt_sums){ 0 };
		memset(t->kind_ns, 0, sizeof(t->kind_ns));
		t->blocked_ns = t->caused_ns = t->buffer_ns = t->silent_ns = 0;
		t->histogram = 0;
	}
	for (uint32_t i = 1; i < m->pairs.count; i++) {
		MD_PAIR(m, i)->sums = (struct ptt_sums){ 0 };
		MD_PAIR(m, i)->caused_ns = 0;
	}
	for (uint32_t i = 1; i < m->blames.count; i++)
		MD_BLAME(m, i)->caused_ns = 0;
}

/* The sums continue, except the histograms, which a snapshot lacks. */
static void forget_histograms(struct ptt_model *m)
{
	for (uint32_t i = 1; i < m->t.objects.count; i++)
		MD_OBJECT(m, i)->pub.histogram = 0;
	for (uint32_t i = 1; i < m->sites.count; i++)
		MD_SITE(m, i)->pub.histogram = 0;
	for (uint32_t i = 1; i < m->t.threads.count; i++)
		MD_THREAD(m, i)->pub.histogram = 0;
}

static int load(struct ptt_model *m, const void *data, uint64_t size, void (*forget)(struct ptt_model *m))
{
	struct taker t = { .at = data, .left = size };
	struct snapshot_end end;

	if (size < sizeof(end))
		return -EBADMSG;
	t.left -= sizeof(end);
	memcpy(&end, t.at + t.left, sizeof(end));
	if (end.magic != SNAPSHOT_MAGIC || end.version != PTT_MODEL_VERSION || end.sizes != sizes() ||
	    end.bytes != t.left || end.crc != ptt_crc32c(0, data, t.left))
		return -EBADMSG;
	take_all(&t, m);
	if (!t.err && t.left)
		t.err = -EBADMSG;
	if (!t.err)
		forget(m);
	m->t.error = m->t.error ? m->t.error : t.err;
	return m->t.error;
}

int ptt_model_load(struct ptt_model *m, const void *data, uint64_t size)
{
	return load(m, data, size, forget_sums);
}

int ptt_model_resume(struct ptt_model *m, const void *data, uint64_t size)
{
	return load(m, data, size, forget_histograms);
}
