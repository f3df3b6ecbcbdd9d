/* SPDX-License-Identifier: MIT */
/* feed.c - puts the waits, holds and states of the model into tracks. */
#include "drawing.h"

/* ---- objects ---- */

/* Gives rows to new objects. Joins get none: they wait for threads, which have rows already. */
static int know_objects(struct ptt_detail *d, const struct ptt_model_table *objects)
{
	if (objects->count >= UINT32_MAX)
		return -EOVERFLOW;
	if (dt_more((void **)&d->row_of, &d->object_room, (uint32_t)objects->count, sizeof(*d->row_of)) < 0 ||
	    dt_row_reach(d, PTT_DETAIL_OBJECTS, 0) < 0)
		return -ENOMEM;
	for (uint32_t i = d->object_count; i < objects->count; i++) {
		const struct ptt_model_object *o =
			(const void *)((const uint8_t *)objects->items + i * objects->stride);
		struct rd_entry *e;

		if (!i || o->kind == PTT_KIND_THREAD)
			continue;
		e = rd_map_put(&d->row_by_key, (uint64_t)o->init_site << 32 | o->process << 8 | o->kind, o->address);
		if (!e)
			return -ENOMEM;
		if (!e->value) {
			e->value = d->rows[PTT_DETAIL_OBJECTS].count;
			if (dt_row_reach(d, PTT_DETAIL_OBJECTS, (uint32_t)e->value) < 0)
				return -ENOMEM;
		}
		d->row_of[i] = (uint32_t)e->value;
	}
	d->object_count = (uint32_t)objects->count;
	return 0;
}

/* ---- waits ---- */

static struct ptt_detail_wait *new_wait(struct ptt_detail *d, uint32_t id)
{
	uint32_t block = id / DT_WAITS;

	if (block >= d->wait_blocks_count) {
		uint32_t room = d->wait_blocks_count;

		if (dt_more((void **)&d->wait_blocks, &room, block + 1, sizeof(*d->wait_blocks)) < 0)
			return NULL;
		d->wait_blocks_count = room;
	}
	if (!d->wait_blocks[block])
		d->wait_blocks[block] = dt_alloc(&d->store, DT_WAITS * sizeof(struct ptt_detail_wait));
	if (!d->wait_blocks[block])
		return NULL;
	if (id >= d->wait_count)
		d->wait_count = id + 1;
	return (struct ptt_detail_wait *)(void *)(d->store.base + d->wait_blocks[block]) + id % DT_WAITS;
}

static int feed_wait(struct ptt_detail *d, const struct ptt_model_wait *w)
{
	struct dt_record record = {
		.begin = w->t_ns, .end = (int64_t)((uint64_t)w->t_ns + (uint64_t)w->dur_ns), .wait = (uint32_t)w->id,
		.other = w->object, .depth = w->queue_depth, .open = w->open,
	};
	struct ptt_detail_wait *to;
	uint32_t row;
	int err;

	if (w->dur_ns < 0 || record.end < record.begin || !w->id || w->id >= UINT32_MAX || w->object >= d->object_count)
		return 0;
	to = new_wait(d, (uint32_t)w->id);
	if (!to)
		return -ENOMEM;
	*to = (struct ptt_detail_wait){
		.t_ns = w->t_ns, .dur_ns = w->dur_ns, .held_ns = w->held_ns,
		.waker_t_ns = w->waker_t_ns, .ready_ns = w->ready_ns,
		.parent = w->parent < UINT32_MAX ? (uint32_t)w->parent : 0, .thread = w->thread,
		.object = w->object, .site = w->site, .owner = w->owner, .owner_site = w->owner_site,
		.waker = w->waker, .waker_site = w->waker_site, .stack = w->stack,
		.holder_stack = w->holder_stack, .holder_site = w->holder_site,
		.queue_depth = w->queue_depth < UINT16_MAX ? (uint16_t)w->queue_depth : UINT16_MAX,
		.result = (int16_t)w->result, .wait_class = w->wait_class, .kind = w->kind,
		.mode = w->mode, .open = w->open,
	};
	dt_overview_wait(d->overview, record.begin, record.end, w->wait_class < 2 ? w->wait_class : 2);
	err = dt_put(d, PTT_DETAIL_THREADS, w->thread, 0, 1u + w->wait_class, &record);
	row = d->row_of[w->object];
	record.other = w->thread;
	if (!err && row)
		err = dt_put(d, PTT_DETAIL_OBJECTS, row, 0, 1u + w->wait_class, &record);
	return err;
}

/* ---- holds ---- */

/* The lane of a hold. Lane 0 is for waits. A hold lies above the holds that begin during it. */
static uint32_t lane_of(uint8_t place)
{
	return place < DT_LANES ? 1u + place : DT_LANES;
}

static int feed_hold(struct ptt_detail *d, const struct ptt_model_hold *h)
{
	struct dt_record record = {
		.begin = h->t_ns, .end = (int64_t)((uint64_t)h->t_ns + (uint64_t)h->dur_ns), .other = h->object,
		.depth = h->max_waiters, .open = h->open,
	};
	uint32_t state = h->mode == PTT_MODE_SHARED ? PTT_DETAIL_SHARED : PTT_DETAIL_HELD, row;
	int err;

	if (h->dur_ns < 0 || record.end < record.begin || h->object >= d->object_count)
		return 0;
	err = dt_put(d, PTT_DETAIL_THREADS, h->thread, lane_of(h->thread_place), state, &record);
	row = d->row_of[h->object];
	if (err || !row)
		return err;
	record.other = h->thread;
	return dt_put(d, PTT_DETAIL_OBJECTS, row, lane_of(h->object_place), state, &record);
}

/* ---- states ---- */

/* Waits are drawn by feed_wait(). Unknown states are not drawn. */
static int feed_state(struct ptt_detail *d, const struct ptt_model_state *s)
{
	static const uint8_t drawn[PTT_STATES] = {
		[PTT_STATE_RUNNING] = PTT_DETAIL_RUNNING,
		[PTT_STATE_READY] = PTT_DETAIL_READY,
		[PTT_STATE_PREEMPTED] = PTT_DETAIL_PREEMPTED,
		[PTT_STATE_ASLEEP] = PTT_DETAIL_ASLEEP,
	};
	struct dt_record record = {
		.begin = s->t_ns, .end = (int64_t)((uint64_t)s->t_ns + (uint64_t)s->dur_ns), .other = s->call,
	};
	int err;

	if (s->dur_ns < 0 || record.end < record.begin || s->state >= PTT_STATES)
		return 0;
	err = dt_turns_feed(d, s);
	if (err || !drawn[s->state] || s->wait)
		return err;
	return dt_put(d, PTT_DETAIL_THREADS, s->thread, 0, drawn[s->state], &record);
}

int ptt_detail_events(struct ptt_detail *d, const int64_t *ts, int64_t n)
{
	if (d->finished)
		return -EROFS;
	dt_overview_events(d->overview, ts, n);
	return 0;
}

int ptt_detail_feed(struct ptt_detail *d, const struct ptt_model_table *waits, const struct ptt_model_table *holds,
		    const struct ptt_model_table *states, const struct ptt_model_table *objects)
{
	int err = d->finished ? -EROFS : know_objects(d, objects);

	for (uint64_t i = 0; i < waits->count && !err; i++)
		err = feed_wait(d, (const void *)((const uint8_t *)waits->items + i * waits->stride));
	for (uint64_t i = 0; i < holds->count && !err; i++)
		err = feed_hold(d, (const void *)((const uint8_t *)holds->items + i * holds->stride));
	for (uint64_t i = 0; i < states->count && !err; i++)
		err = feed_state(d, (const void *)((const uint8_t *)states->items + i * states->stride));
	return err;
}
