/* SPDX-License-Identifier: MIT */
/* detail.c - the levels of detail as a whole: creation, saving and opening of the file, simple queries. */
#include "drawing.h"

#define MAGIC UINT64_C(0x3356454956545450) /* PTTVIEV3, as bytes in memory */

/* A table in the file. */
struct table {
	uint64_t offset;
	uint64_t count;
};

/* The beginning of the file; zeros until the file is complete. */
struct head {
	uint64_t magic;
	uint8_t identity[32];
	uint64_t size;
	struct table tracks;
	struct table rows[PTT_DETAIL_KINDS];
	struct table row_of;
	struct table wait_blocks;
	uint64_t wait_count;
	uint64_t overview;
};

_Static_assert(sizeof(struct head) == 48 + 16 * 6 + 16, "head");

int ptt_detail_version(void)
{
	return PTT_DETAIL_VERSION;
}

struct ptt_detail *ptt_detail_create(int fd)
{
	struct ptt_detail *d = calloc(1, sizeof(*d));
	int err = d ? dt_store_create(&d->store, fd) : -ENOMEM;

	/* The head lies at offset 0, so offset 0 means none everywhere else. */
	if (!err)
		errno = 0;
	if (!err && (dt_alloc(&d->store, sizeof(struct head)) || errno))
		err = errno ? -errno : 0;
	if (!err) {
		d->overview = calloc(1, sizeof(*d->overview));
		d->tracks = calloc(256, sizeof(*d->tracks));
		d->track_room = 256;
		d->track_count = 1;
		err = d->overview && d->tracks ? 0 : -ENOMEM;
	}
	if (err) {
		ptt_detail_destroy(d);
		errno = -err;
		return NULL;
	}
	return d;
}

void ptt_detail_destroy(struct ptt_detail *d)
{
	if (!d)
		return;
	if (!d->store.guard) {
		free(d->tracks);
		for (int by = 0; by < PTT_DETAIL_KINDS; by++)
			free(d->rows[by].items);
		free(d->row_of);
		free(d->wait_blocks);
		free(d->overview);
	}
	dt_turns_free(&d->turns);
	rd_map_free(&d->row_by_key);
	dt_store_close(&d->store);
	free(d);
}

/* ---- keeping ---- */

static int keep(struct dt_store *store, struct table *table, const void *items, uint64_t count, uint64_t size)
{
	uint64_t offset = dt_alloc(store, count * size + 8);

	if (!offset)
		return -errno;
	memcpy(store->base + offset, items, count * size);
	*table = (struct table){ offset, count };
	return 0;
}

int ptt_detail_finish(struct ptt_detail *d, const uint8_t *identity)
{
	struct dt_store *store = &d->store;
	struct head head = { .magic = MAGIC, .wait_count = d->wait_count };
	struct table overview = { 0 };
	int err;

	if (d->finished)
		return -EROFS;
	err = keep(store, &head.tracks, d->tracks, d->track_count, sizeof(*d->tracks));
	for (int by = 0; by < PTT_DETAIL_KINDS && !err; by++)
		if (d->rows[by].count)
			err = keep(store, &head.rows[by], d->rows[by].items, d->rows[by].count,
				   sizeof(*d->rows[by].items));
	if (!err && d->object_count)
		err = keep(store, &head.row_of, d->row_of, d->object_count, sizeof(*d->row_of));
	if (!err && d->wait_blocks_count)
		err = keep(store, &head.wait_blocks, d->wait_blocks, d->wait_blocks_count, sizeof(*d->wait_blocks));
	err = err ? err : keep(store, &overview, d->overview, 1, sizeof(*d->overview));
	if (err)
		return err;
	head.overview = overview.offset;
	head.size = store->used + DT_SLACK;
	memcpy(head.identity, identity, sizeof(head.identity));
	memcpy(store->base, &head, sizeof(head));
	d->finished = true;
	return dt_store_finish(store);
}

/* ---- opening ---- */

/* The bytes of a table; NULL: the file does not have all of them. */
static void *table_at(const struct dt_store *store, const struct table *table, uint64_t size)
{
	if (table->count >= UINT32_MAX || table->offset % 8)
		return NULL;
	return dt_at(store, table->offset, table->count * size);
}

static bool open_tables(struct ptt_detail *d, const struct head *head)
{
	const struct table overview = { head->overview, 1 };

	d->tracks = table_at(&d->store, &head->tracks, sizeof(*d->tracks));
	d->track_count = (uint32_t)head->tracks.count;
	for (int by = 0; by < PTT_DETAIL_KINDS; by++) {
		d->rows[by].items = table_at(&d->store, &head->rows[by], sizeof(*d->rows[by].items));
		d->rows[by].count = (uint32_t)head->rows[by].count;
	}
	d->row_of = table_at(&d->store, &head->row_of, sizeof(*d->row_of));
	d->object_count = (uint32_t)head->row_of.count;
	d->wait_blocks = table_at(&d->store, &head->wait_blocks, sizeof(*d->wait_blocks));
	d->wait_blocks_count = (uint32_t)head->wait_blocks.count;
	d->wait_count = head->wait_count < UINT32_MAX ? (uint32_t)head->wait_count : 0;
	d->overview = table_at(&d->store, &overview, sizeof(*d->overview));
	d->finished = true;
	for (int by = 0; by < PTT_DETAIL_KINDS; by++)
		if (!d->rows[by].items)
			return false;
	return d->tracks && d->row_of && d->wait_blocks && d->overview && d->overview->width > 0;
}

struct ptt_detail *ptt_detail_open(int fd, const uint8_t *identity)
{
	struct ptt_detail *d = calloc(1, sizeof(*d));
	int err = d ? dt_store_open(&d->store, fd) : -ENOMEM;
	const struct head *head;

	if (!err) {
		head = dt_at(&d->store, 0, sizeof(*head));
		if (!head || head->magic != MAGIC || head->size > d->store.size ||
		    memcmp(head->identity, identity, sizeof(head->identity)) != 0 || !open_tables(d, head))
			err = -ESTALE;
	}
	if (err) {
		ptt_detail_destroy(d);
		errno = -err;
		return NULL;
	}
	return d;
}

/* ---- simple queries ---- */

uint32_t ptt_detail_rows(const struct ptt_detail *d, uint32_t by)
{
	return by < PTT_DETAIL_KINDS ? d->rows[by].count : 0;
}

int ptt_detail_lanes(const struct ptt_detail *d, uint32_t by, uint16_t *lanes, uint32_t n)
{
	if (by >= PTT_DETAIL_KINDS)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		uint16_t known = i < d->rows[by].count ? d->rows[by].items[i].lanes : 0;

		lanes[i] = known ? known : 1;
	}
	return 0;
}

int64_t ptt_detail_row_of(const struct ptt_detail *d, uint32_t *rows, uint32_t n)
{
	uint32_t known = n < d->object_count ? n : d->object_count;

	if (known)
		memcpy(rows, d->row_of, known * sizeof(*rows));
	return d->object_count;
}

const struct ptt_detail_wait *dt_wait(const struct ptt_detail *d, uint32_t id)
{
	const struct ptt_detail_wait *block;

	if (id >= d->wait_count || id / DT_WAITS >= d->wait_blocks_count || !d->wait_blocks[id / DT_WAITS])
		return NULL;
	block = dt_at(&d->store, d->wait_blocks[id / DT_WAITS], DT_WAITS * sizeof(*block));
	return block && (uintptr_t)block % 8 == 0 ? &block[id % DT_WAITS] : NULL;
}

int ptt_detail_wait(const struct ptt_detail *d, uint32_t id, struct ptt_detail_wait *out)
{
	const struct ptt_detail_wait *wait = dt_wait(d, id);

	if (!wait || !wait->thread)
		return -ENOENT;
	*out = *wait;
	return 0;
}

int64_t ptt_detail_waits(const struct ptt_detail *d, uint32_t first, struct ptt_detail_wait *out, uint32_t n)
{
	uint32_t count = first < d->wait_count ? d->wait_count - first : 0;

	if (count > n)
		count = n;
	for (uint32_t i = 0; i < count; i++) {
		const struct ptt_detail_wait *wait = dt_wait(d, first + i);

		out[i] = wait ? *wait : (struct ptt_detail_wait){ 0 };
	}
	return count;
}

int64_t ptt_detail_overview(const struct ptt_detail *d, struct ptt_detail_bin *out, int64_t *begin_ns,
			    int64_t *width_ns)
{
	*begin_ns = d->overview->begin;
	*width_ns = d->overview->width;
	memcpy(out, d->overview->bins, sizeof(d->overview->bins));
	return d->overview->used ? PTT_DETAIL_BINS : 0;
}
