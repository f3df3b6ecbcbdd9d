/* SPDX-License-Identifier: MIT */
/* query.c - the spans to draw in a stretch of time, bin by bin. */
/*
 * A record that is at least as long as a bin is drawn by itself. Shorter records, and whole parts of a tree that are shorter, go
 * into the bin where they begin. Waits in the row of an object that are drawn by themselves become steps of a queue: the number
 * of waiters from one change to the next.
 */
#include "drawing.h"

#define MAX_BINS 65536u

/* The merged records of a track in a bin: from the first beginning to the last end. */
struct cell {
	int64_t begin;
	int64_t end;
	uint64_t busy;
	uint32_t count;
	uint32_t longest;
	uint32_t other;
	uint32_t wait;
	uint32_t depth;
	bool open;
};

/* A change of the number of waiters. */
struct change {
	int64_t ts;
	int64_t end; /* of the wait that begins */
	int32_t step;
	uint8_t state;
	uint32_t thread;
	uint32_t wait;
};

struct query {
	const struct ptt_detail *detail;
	int64_t from;
	int64_t to;
	int64_t bin;  /* 0: do not merge */
	int64_t first_bin;
	uint32_t by;
	/* the current row and track */
	uint32_t row;
	const struct dt_track *track;
	/* the answer */
	struct ptt_detail_span *out;
	int64_t room;
	int64_t count;
	struct cell *cells;
	uint32_t *touched; /* cells that are not empty */
	uint32_t touched_count;
	uint32_t bins;
	struct change *changes;
	uint32_t change_count;
	uint32_t change_room;
	int err;
};

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}


/* ---- spans of the answer ---- */

static void emit(struct query *q, const struct ptt_detail_span *span)
{
	if (q->count < q->room)
		q->out[q->count] = *span;
	q->count++;
}

static void add_change(struct query *q, int64_t ts, int32_t step, const struct dt_record *r)
{
	if (dt_more((void **)&q->changes, &q->change_room, q->change_count + 1, sizeof(*q->changes)) < 0) {
		q->err = -ENOMEM;
		return;
	}
	q->changes[q->change_count++] = (struct change){ ts, r->end, step, q->track->state, r->other, r->wait };
}

/* Sets how long the object of a contended wait was free, and whether this was at the end of the wait. */
static void divide(const struct query *q, const struct dt_record *r, struct ptt_detail_span *span)
{
	const struct ptt_detail_wait *w = r->wait && !r->open ? dt_wait(q->detail, r->wait) : NULL;

	if (!w || w->wait_class != PTT_CONTENDED || w->held_ns < 0 || w->held_ns > span->dur_ns)
		return;
	span->wake_ns = span->dur_ns - w->held_ns;
	if (w->waker_t_ns >= r->begin && w->waker_t_ns <= r->begin + w->held_ns)
		span->flags |= PTT_DETAIL_WOKEN;
}

static void draw(struct query *q, const struct dt_record *r)
{
	struct ptt_detail_span span;

	/* The waits of an object are its queue. */
	if (q->by == PTT_DETAIL_OBJECTS && dt_is_wait(q->track)) {
		add_change(q, r->begin, 1, r);
		add_change(q, r->end, -1, r);
		return;
	}
	span = (struct ptt_detail_span){
		.t_ns = r->begin, .dur_ns = r->end - r->begin, .busy_ns = r->end - r->begin, .row = q->row, .count = 1,
		.other = r->other, .depth = r->depth, .wait = r->wait, .lane = q->track->lane,
		.state = q->track->state, .flags = r->open ? PTT_DETAIL_OPEN : 0,
	};
	divide(q, r, &span);
	emit(q, &span);
}

/* Merges a short part into the bin where it begins, or into the first bin if it begins earlier. */
static void gather(struct query *q, const struct cell *part)
{
	int64_t place = floor_div(part->begin, q->bin) - q->first_bin;
	struct cell *c;

	if (place < 0)
		place = 0;
	if (place >= q->bins)
		return;
	c = &q->cells[place];
	if (!c->count) {
		*c = *part;
		q->touched[q->touched_count++] = (uint32_t)place;
		return;
	}
	if (part->begin < c->begin)
		c->begin = part->begin;
	if (part->end > c->end)
		c->end = part->end;
	if (part->longest > c->longest) {
		c->longest = part->longest;
		c->other = part->other;
		c->wait = part->wait;
	}
	if (part->depth > c->depth)
		c->depth = part->depth;
	c->busy += part->busy;
	c->count += part->count;
	c->open |= part->open;
}

/* Draws the merged spans of a track. */
static void scatter(struct query *q)
{
	for (uint32_t i = 0; i < q->touched_count; i++) {
		struct cell *c = &q->cells[q->touched[i]];
		bool single = c->count == 1;
		struct ptt_detail_span span = {
			.t_ns = c->begin, .dur_ns = c->end - c->begin, .row = q->row, .count = c->count,
			.other = c->other, .depth = c->depth, .wait = c->wait, .lane = q->track->lane,
			.state = q->track->state,
			.flags = (uint8_t)((single ? 0 : PTT_DETAIL_MERGED) | (c->open ? PTT_DETAIL_OPEN : 0)),
		};

		/* Records at the same time, as in a queue, do not make it longer. */
		span.busy_ns = c->busy < (uint64_t)span.dur_ns ? (int64_t)c->busy : span.dur_ns;
		emit(q, &span);
		c->count = 0;
	}
	q->touched_count = 0;
}

/* ---- through a track ---- */

static void see_record(struct query *q, const struct dt_record *r)
{
	int64_t dur = r->end - r->begin;

	if (r->begin >= q->to || r->end < q->from || (r->end == q->from && dur))
		return;
	if (dur >= q->bin) {
		draw(q, r);
		return;
	}
	gather(q, &(struct cell){
		.begin = r->begin, .end = r->end, .busy = (uint64_t)dur, .count = 1,
		.longest = dur < UINT32_MAX ? (uint32_t)dur : UINT32_MAX, .other = r->other, .wait = r->wait,
		.depth = r->depth, .open = r->open,
	});
}

static void see_leaf(struct query *q, uint64_t at, uint32_t count)
{
	struct dt_record record;

	for (uint32_t i = 0; i < count; i++) {
		if (!dt_read(&q->detail->store, &at, dt_is_wait(q->track), i == 0, &record))
			return;
		see_record(q, &record);
	}
}

static void see_node(struct query *q, uint32_t level, const struct dt_node *node);

static void see_block(struct query *q, uint32_t level, uint64_t at, uint32_t count)
{
	const struct dt_node *block = dt_at(&q->detail->store, at, DT_FAN * sizeof(*block));

	if (!block || at % 8 || !at)
		return;
	for (uint32_t i = 0; i < count && i < DT_FAN; i++)
		see_node(q, level, &block[i]);
}

static void see_node(struct query *q, uint32_t level, const struct dt_node *node)
{
	if (node->begin >= q->to || node->end < q->from || node->end < node->begin)
		return;
	if ((uint64_t)node->end - (uint64_t)node->begin < (uint64_t)q->bin) {
		gather(q, &(struct cell){
			.begin = node->begin, .end = node->end, .busy = node->busy, .count = node->count,
			.longest = node->longest, .other = node->other, .wait = node->wait, .depth = node->depth,
		});
		return;
	}
	if (level)
		see_block(q, level - 1, node->child, DT_FAN);
	else
		see_leaf(q, node->child, DT_LEAF);
}

static void see_track(struct query *q)
{
	const struct dt_track *t = q->track;
	uint32_t levels = t->level_count < DT_LEVELS ? t->level_count : DT_LEVELS;

	while (levels-- > 0)
		if (t->levels[levels].block)
			see_block(q, levels, t->levels[levels].block, t->levels[levels].count);
	if (t->leaf.count && t->leaf.begin < q->to && t->leaf.end >= q->from)
		see_leaf(q, t->leaf.child, t->leaf.count < DT_LEAF ? t->leaf.count : DT_LEAF);
}

/* ---- queues ---- */

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

/* The state of a queue: the most telling state among its waiters. */
static uint8_t queue_state(const int32_t *waiting)
{
	static const uint8_t order[] = { PTT_CONTENDED, PTT_GIL, PTT_TIMEOUT, PTT_CANCELLED, PTT_UNKNOWN, PTT_JOIN };

	for (uint32_t i = 0; i < sizeof(order); i++)
		if (waiting[1 + order[i]] > 0)
			return 1 + order[i];
	return 1 + PTT_IDLE;
}

static void draw_queue(struct query *q)
{
	int32_t all = 0, waiting[PTT_DETAIL_STATES] = { 0 };
	uint32_t first = 0; /* the change that added the longest waiter */

	qsort(q->changes, q->change_count, sizeof(*q->changes), by_time);
	for (uint32_t i = 0; i < q->change_count;) {
		int64_t ts = q->changes[i].ts;

		for (; i < q->change_count && q->changes[i].ts == ts; i++) {
			all += q->changes[i].step;
			waiting[q->changes[i].state] += q->changes[i].step;
		}
		if (all <= 0 || i == q->change_count || q->changes[i].ts <= q->from || ts >= q->to)
			continue;
		while (first < i - 1 && (q->changes[first].step < 0 || q->changes[first].end <= ts))
			first++;
		emit(q, &(struct ptt_detail_span){
			.t_ns = ts, .dur_ns = q->changes[i].ts - ts, .busy_ns = q->changes[i].ts - ts, .row = q->row,
			.count = 1, .depth = (uint32_t)all, .other = q->changes[first].thread,
			.wait = q->changes[first].wait,
			.state = queue_state(waiting),
		});
	}
	q->change_count = 0;
}

static void see_row(struct query *q)
{
	const struct dt_rows *rows = &q->detail->rows[q->by];
	uint32_t left = q->detail->track_count, number;

	if (q->row >= rows->count)
		return;
	/* A manipulated file may lead in a circle. */
	for (number = rows->items[q->row].track; number && number < q->detail->track_count && left--;
	     number = q->track->next) {
		q->track = &q->detail->tracks[number];
		see_track(q);
		if (q->bin)
			scatter(q);
	}
	if (q->change_count)
		draw_queue(q);
}

int64_t ptt_detail_spans(const struct ptt_detail *d, uint32_t by, const uint32_t *rows, uint32_t count, int64_t from,
			 int64_t to, int64_t bin, struct ptt_detail_span *out, int64_t room)
{
	struct query q = { .detail = d, .from = from, .to = to, .bin = bin, .by = by, .out = out, .room = room };
	uint64_t bins = 0;

	if (by >= PTT_DETAIL_KINDS || bin < 0 || from >= to)
		return -EINVAL;
	if (bin) {
		q.first_bin = floor_div(from, bin);
		bins = (uint64_t)floor_div(to - 1, bin) - (uint64_t)q.first_bin + 1;
	}
	if (bins > MAX_BINS)
		return -EINVAL;
	q.bins = (uint32_t)bins;
	q.cells = calloc(bins + 1, sizeof(*q.cells));
	q.touched = calloc(bins + 1, sizeof(*q.touched));
	if (!q.cells || !q.touched)
		q.err = -ENOMEM;
	for (uint32_t i = 0; i < count && !q.err; i++) {
		q.row = rows[i];
		see_row(&q);
	}
	free(q.cells);
	free(q.touched);
	free(q.changes);
	return q.err ? q.err : q.count;
}

int ptt_detail_find(const struct ptt_detail *d, uint32_t by, uint32_t row, uint32_t lane, int64_t ts,
		    struct ptt_detail_span *out)
{
	struct ptt_detail_span spans[64];
	struct query q = { .detail = d, .from = ts, .to = ts + 1, .by = by, .row = row, .out = spans, .room = 64 };

	if (by >= PTT_DETAIL_KINDS || ts == INT64_MAX)
		return -EINVAL;
	see_row(&q);
	free(q.changes);
	for (int64_t i = 0; i < q.count && i < q.room; i++)
		if (spans[i].lane == lane) {
			*out = spans[i];
			return 0;
		}
	return -ENOENT;
}
