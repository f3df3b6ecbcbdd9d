/* SPDX-License-Identifier: MIT */
/* tracks.c - packed lists of records, with trees above them that grow from the leaves. */
/*
 * A record is a byte with the flag `open` and the depth, then numbers of seven bits a byte. They are the signed gap from the end
 * of the record before (in the first record of a leaf: from 0), the duration, and `other`. A wait adds its number, as the signed
 * distance from the wait before. The extents of a track double in size up to MAX_EXTENT. The byte JUMP, and a position, lead from
 * an extent to the next extent, which is always later in the file.
 */
#include "drawing.h"

#define JUMP 0xffu
#define JUMP_SIZE 9u
#define DEEP 126u /* the depth follows as a number */
#define MIN_EXTENT 64u
#define MAX_EXTENT 8192u

static uint8_t *put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)value | 0x80;
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static int new_extent(struct dt_store *store, struct dt_track *track)
{
	uint32_t size = track->extent ? track->extent : MIN_EXTENT;
	uint64_t offset = dt_alloc(store, size);
	uint8_t *p;

	if (!offset)
		return -errno;
	if (track->at) {
		p = store->base + track->at;
		*p = JUMP;
		memcpy(p + 1, &offset, sizeof(offset));
	}
	track->at = offset;
	track->extent_end = offset + size;
	track->extent = size < MAX_EXTENT ? size * 2 : size;
	return 0;
}

/* ---- trees ---- */

static void add(struct dt_node *sum, const struct dt_node *part)
{
	if (!sum->count || part->begin < sum->begin)
		sum->begin = part->begin;
	if (!sum->count || part->end > sum->end)
		sum->end = part->end;
	if (!sum->count || part->longest > sum->longest) {
		sum->longest = part->longest;
		sum->other = part->other;
		sum->wait = part->wait;
	}
	if (part->depth > sum->depth)
		sum->depth = part->depth;
	sum->busy += part->busy;
	sum->count += part->count;
}

/* Adds a node to the lowest level. If this fills a block, its parent node goes to the next level. */
static int grow(struct dt_store *store, struct dt_track *track, struct dt_node node)
{
	for (uint32_t level = 0; level < DT_LEVELS; level++) {
		struct dt_level *l = &track->levels[level];
		struct dt_node *block;

		if (!l->block) {
			l->block = dt_alloc(store, DT_FAN * sizeof(*block));
			if (!l->block)
				return -errno;
			if (level == track->level_count)
				track->level_count++;
		}
		block = (struct dt_node *)(void *)(store->base + l->block);
		block[l->count++] = node;
		if (l->count < DT_FAN)
			return 0;
		node = (struct dt_node){ .child = l->block };
		for (uint32_t i = 0; i < DT_FAN; i++)
			add(&node, &block[i]);
		l->block = 0;
		l->count = 0;
	}
	return -EOVERFLOW;
}

static int close_leaf(struct dt_store *store, struct dt_track *track)
{
	const struct dt_node leaf = track->leaf;

	track->leaf = (struct dt_node){ 0 };
	track->last_end = 0;
	track->last_wait = 0;
	return grow(store, track, leaf);
}

int dt_append(struct dt_store *store, struct dt_track *track, const struct dt_record *record)
{
	uint64_t dur = (uint64_t)record->end - (uint64_t)record->begin;
	struct dt_node node = {
		.begin = record->begin, .end = record->end, .busy = dur, .count = 1, .other = record->other,
		.wait = record->wait, .longest = dur < UINT32_MAX ? (uint32_t)dur : UINT32_MAX,
		.depth = record->depth,
	};
	uint8_t bytes[DT_RECORD], *p = bytes;

	*p++ = (uint8_t)((record->depth < DEEP ? record->depth : DEEP) << 1 | record->open);
	p = put(p, zigzag((int64_t)((uint64_t)record->begin - (uint64_t)track->last_end)));
	p = put(p, dur);
	p = put(p, record->other);
	if (dt_is_wait(track))
		p = put(p, zigzag((int64_t)record->wait - (int64_t)track->last_wait));
	if (record->depth >= DEEP)
		p = put(p, record->depth);
	/* After the record there must be room for the jump to the next extent. */
	if (!track->at || track->extent_end - track->at < (uint64_t)(p - bytes) + JUMP_SIZE) {
		int err = new_extent(store, track);

		if (err < 0)
			return err;
	}
	if (!track->leaf.count)
		track->leaf.child = track->at;
	memcpy(store->base + track->at, bytes, (size_t)(p - bytes));
	track->at += (uint64_t)(p - bytes);
	track->last_end = record->end;
	track->last_wait = record->wait;
	node.child = track->leaf.child;
	add(&track->leaf, &node);
	return track->leaf.count == DT_LEAF ? close_leaf(store, track) : 0;
}

/* ---- reading ---- */

static const uint8_t *get(const uint8_t *p, uint64_t *value)
{
	uint64_t sum = 0;

	for (uint32_t shift = 0; shift < 64; shift += 7) {
		sum |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80)) {
			*value = sum;
			return p;
		}
	}
	*value = sum;
	return p;
}

bool dt_read(const struct dt_store *store, uint64_t *at, bool is_wait, bool first, struct dt_record *record)
{
	/* A record of any bytes is shorter than DT_SLACK. */
	const uint8_t *p = dt_at(store, *at, DT_SLACK);
	uint64_t gap, dur, other, wait = 0, depth;
	uint8_t head;

	while (p && *p == JUMP) {
		uint64_t to;

		memcpy(&to, p + 1, sizeof(to));
		p = to > *at ? dt_at(store, to, DT_SLACK) : NULL;
		*at = to;
	}
	if (!p)
		return false;
	if (first)
		*record = (struct dt_record){ 0 };
	head = *p++;
	p = get(get(get(p, &gap), &dur), &other);
	if (is_wait)
		p = get(p, &wait);
	depth = head >> 1;
	if (depth == DEEP)
		p = get(p, &depth);
	record->begin = (int64_t)((uint64_t)record->end + (uint64_t)unzigzag(gap));
	record->end = (int64_t)((uint64_t)record->begin + dur);
	if (dur > INT64_MAX || record->end < record->begin)
		return false;
	record->open = head & 1;
	record->depth = (uint32_t)depth;
	record->other = (uint32_t)other;
	record->wait = (uint32_t)((int64_t)record->wait + unzigzag(wait));
	*at = (uint64_t)(p - store->base);
	return true;
}

/* ---- rows and their tracks ---- */

int dt_more(void **items, uint32_t *room, uint32_t want, size_t size)
{
	uint32_t now = *room ? *room : 256;
	void *grown;

	if (want <= *room)
		return 0;
	while (now < want && now < UINT32_MAX / 2)
		now *= 2;
	if (now < want)
		return -ENOMEM;
	grown = reallocarray(*items, now, size);
	if (!grown)
		return -ENOMEM;
	memset((uint8_t *)grown + *room * size, 0, (now - *room) * size);
	*items = grown;
	*room = now;
	return 0;
}

int dt_row_reach(struct ptt_detail *d, uint32_t by, uint32_t row)
{
	struct dt_rows *rows = &d->rows[by];

	if (row < rows->count)
		return 0;
	if (row == UINT32_MAX || dt_more((void **)&rows->items, &rows->room, row + 1, sizeof(*rows->items)) < 0)
		return -ENOMEM;
	rows->count = row + 1;
	return 0;
}

static struct dt_track *track_of(struct ptt_detail *d, uint32_t by, uint32_t row, uint32_t lane, uint32_t state)
{
	struct dt_row *r;
	uint32_t number;

	if (dt_row_reach(d, by, row) < 0)
		return NULL;
	r = &d->rows[by].items[row];
	for (number = r->track; number; number = d->tracks[number].next)
		if (d->tracks[number].lane == lane && d->tracks[number].state == state)
			return &d->tracks[number];
	if (dt_more((void **)&d->tracks, &d->track_room, d->track_count + 1, sizeof(*d->tracks)) < 0)
		return NULL;
	number = d->track_count++;
	d->tracks[number] = (struct dt_track){
		.lane = (uint8_t)lane, .state = (uint8_t)state, .next = r->track,
	};
	r->track = number;
	if (lane >= r->lanes)
		r->lanes = (uint16_t)(lane + 1);
	return &d->tracks[number];
}

int dt_put(struct ptt_detail *d, uint32_t by, uint32_t row, uint32_t lane, uint32_t state,
	   const struct dt_record *record)
{
	struct dt_track *track = track_of(d, by, row, lane, state);

	return track ? dt_append(&d->store, track, record) : -ENOMEM;
}
