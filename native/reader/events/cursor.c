/* SPDX-License-Identifier: MIT */
/* cursor.c - walks all streams in one total order and fills columns; seeks times and positions. */
/*
 * A lane is a stream with a place in it. Lanes that still have events stand in a binary heap ordered by (key, stream
 * number). The lane on top may go on until the key of the second lane. So events are taken from it in runs, and the heap is
 * put in order once for each run. Lanes with later events sink to the leaves and cost nothing.
 */
#include "../decode.h"

struct lane {
	const uint8_t *base;  /* of the packet */
	const uint8_t *at;    /* the next event; NULL when the stream has ended */
	const uint8_t *end;   /* of the packet's content */
	const struct rd_clock *clock;
	uint64_t begin;
	uint64_t key;         /* of the next event */
	uint32_t packet;
	uint32_t thread;
	uint32_t trace;
	uint32_t stream_class;
	uint32_t process;     /* slots: process of the packet; records: process of the last record, which had */
	uint32_t pid, tid;
};

struct node {
	uint64_t key;
	uint32_t lane;
};

struct ptt_cursor {
	struct ptt_reader *reader;
	struct lane *lanes;
	struct node *heap;
	uint32_t lane_count;
	uint32_t lane_room;
	uint32_t heap_count;
	bool limited;
	struct ptt_position limit;
};

static inline bool before(const struct node *a, const struct node *b)
{
	return a->key < b->key || (a->key == b->key && a->lane < b->lane);
}

static void heap_down(struct ptt_cursor *cursor, uint32_t i)
{
	struct node moved = cursor->heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= cursor->heap_count)
			break;
		child += child + 1 < cursor->heap_count &&
			 before(&cursor->heap[child + 1], &cursor->heap[child]);
		if (before(&moved, &cursor->heap[child]))
			break;
		cursor->heap[i] = cursor->heap[child];
		i = child;
	}
	cursor->heap[i] = moved;
}

static void heap_build(struct ptt_cursor *cursor)
{
	cursor->heap_count = 0;
	for (uint32_t i = 0; i < cursor->lane_count; i++)
		if (cursor->lanes[i].at)
			cursor->heap[cursor->heap_count++] = (struct node){ cursor->lanes[i].key, i };
	for (uint32_t i = cursor->heap_count / 2; i-- > 0;)
		heap_down(cursor, i);
}

/* ---- one lane ---- */

/* Goes to the next event of this packet from lane->at on, and sets at and key; false if there is none. */
static bool lane_settle(const struct ptt_reader *reader, struct lane *lane)
{
	const uint8_t *p = lane->at;

	if (lane->stream_class == PTT_STREAM_RECORDS) {
		bool sound = false;
		uint32_t size;

		while ((size = rd_record_size(p, lane->end, &sound)) && !sound)
			p += size;
		if (!size)
			return false;
		lane->key = rd_key(reader, lane->clock, rd_u64(p + 4));
	} else {
		while (p < lane->end && rd_slot_skipped(rd_u64(p)))
			p += PTT_SLOT_SIZE;
		if (p >= lane->end)
			return false;
		lane->key = rd_key(reader, lane->clock, rd_slot_ticks(rd_u64(p), lane->begin));
	}
	lane->at = p;
	return true;
}

/* Goes to the first event of the first good packet from number `packet` on. */
static bool lane_open(struct ptt_reader *reader, struct lane *lane, uint32_t number, uint32_t packet)
{
	struct rd_stream *stream = &reader->streams[number];

	lane->trace = stream->trace;
	lane->stream_class = stream->stream_class;
	lane->clock = &reader->traces[stream->trace].clock;
	lane->tid = lane->pid = 0;
	lane->process = RD_NONE;
	for (; packet < stream->count; packet++) {
		struct rd_packet *p = &stream->packets[packet];

		if (!rd_check(reader, p))
			continue;
		lane->packet = packet;
		lane->begin = p->begin;
		lane->thread = p->thread;
		lane->base = rd_data(reader, p);
		lane->at = lane->base + sizeof(struct ptt_packet);
		lane->end = lane->base + p->content;
		if (lane->stream_class == PTT_STREAM_SLOTS)
			lane->process = p->process;
		if (lane_settle(reader, lane))
			return true;
	}
	lane->packet = stream->count;
	lane->at = NULL;
	return false;
}

static void lane_next(struct ptt_reader *reader, struct lane *lane, uint32_t number)
{
	if (lane_settle(reader, lane))
		return;
	lane_open(reader, lane, number, lane->packet + 1);
}

/* A place in a packet of slots, before the first event with this key or a later key, and close to it. */
static const uint8_t *slots_bisect(const struct ptt_reader *reader, const struct lane *lane, uint64_t key)
{
	size_t lo = 0, hi = (size_t)(lane->end - lane->at) / PTT_SLOT_SIZE;

	while (hi - lo > 16) {
		size_t mid = lo + (hi - lo) / 2, head = mid;
		uint64_t w0 = 0;

		/* Slots in the middle of an event have no time: go back to a slot with a time. */
		while (head > lo && rd_slot_skipped(w0 = rd_u64(lane->at + head * PTT_SLOT_SIZE)))
			head--;
		if (head == lo)
			break;
		if (rd_key(reader, lane->clock, rd_slot_ticks(w0, lane->begin)) < key)
			lo = head;
		else
			hi = head;
	}
	return lane->at + lo * PTT_SLOT_SIZE;
}

/* Goes to the first event with this key or a later key: by bisection of packets, then of slots, then event by event. */
static void lane_seek_key(struct ptt_reader *reader, struct lane *lane, uint32_t number, uint64_t key)
{
	struct rd_stream *stream = &reader->streams[number];
	const struct rd_clock *clock = &reader->traces[stream->trace].clock;
	uint32_t lo = 0, hi = stream->count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (rd_key(reader, clock, stream->packets[mid].end) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	lane_open(reader, lane, number, lo);
	if (lane->at && lane->key < key && lane->stream_class == PTT_STREAM_SLOTS) {
		lane->at = slots_bisect(reader, lane, key);
		lane_next(reader, lane, number);
	}
	while (lane->at && lane->key < key) {
		bool sound;

		lane->at += lane->stream_class == PTT_STREAM_RECORDS ?
				    rd_record_size(lane->at, lane->end, &sound) : PTT_SLOT_SIZE;
		lane_next(reader, lane, number);
	}
}

/* ---- runs ---- */

struct run {
	uint64_t bound;      /* keys below this may be taken */
	const uint8_t *stop; /* events before this one may be taken; NULL: no limit */
	int64_t room;
};

/* Sets the stack, and the site by the stack, of an event that was just emitted. Few events have a stack. */
static __attribute__((cold, noinline)) void emit_stack(const struct ptt_columns *out, int64_t i, const struct rd_sites *sites, uint32_t stack)
{
	if (out->stack)
		out->stack[i] = stack;
	if (out->site)
		out->site[i] = rd_sites_choose(sites, stack, out->site[i]);
}

/* Sets the place of the second part of a reading. Few events are readings. */
static __attribute__((cold, noinline)) void emit_reading(const struct ptt_columns *out, int64_t i, const struct lane *lane, const uint8_t *ran)
{
	if (out->reading)
		out->reading[i] = rd_reading_behind(ran, lane->end);
}

/* Takes events of slots. Returns their number. Afterwards lane->at is the next event, with its key, or the end of the packet. */
static inline __attribute__((always_inline)) int64_t run_slots(const struct ptt_reader *reader, struct lane *lane,
							       const struct run *run,
							       const struct ptt_columns *out, int64_t start,
							       bool ticks_are_keys)
{
	const struct rd_clock clock = *lane->clock;
	const uint8_t *p = lane->at, *end = lane->end;
	const uint64_t begin = lane->begin;
	const struct rd_sites sites = reader->processes[lane->process].sites;
	int64_t n = 0;
	uint64_t w0 = rd_u64(p), w1, ticks = rd_slot_ticks(w0, begin), key = lane->key;

	for (;;) {
		uint32_t id = w0 & PTT_ID_MASK;

		if (key >= run->bound || n == run->room || p == run->stop)
			break;
		w1 = rd_u64(p + 8);
		rd_emit(out, start + n, rd_time(&clock, ticks), lane->thread, (uint16_t)id,
			w0 >> PTT_CPU_SHIFT & PTT_CPU_MASK, w1 & PTT_OBJECT_MASK,
			rd_site_of(&sites, rd_sites_find(&sites, (uint32_t)(w1 >> PTT_SITE_SHIFT)), id, ticks),
			rd_payload(p, end, id));
		n++;
		for (;;) {
			p += PTT_SLOT_SIZE;
			if (p >= end) {
				lane->at = p;
				return n;
			}
			w0 = rd_u64(p);
			if (!rd_slot_skipped(w0))
				break;
			if ((w0 & PTT_ID_MASK) == PTT_ID_STACK)
				emit_stack(out, start + n - 1, &reader->processes[lane->process].sites,
					   rd_slot_stack(rd_u64(p + 8)));
			/* Only here, where few events come by, because all readings have a second slot. */
			else if ((rd_u64(p - PTT_SLOT_SIZE) & PTT_ID_MASK) == RD_SCHED_RAN)
				emit_reading(out, start + n - 1, lane, p - PTT_SLOT_SIZE);
		}
		ticks = rd_slot_ticks(w0, begin);
		key = ticks_are_keys ? ticks : (uint64_t)rd_time(&clock, ticks) ^ RD_KEY_BIAS;
	}
	lane->at = p;
	lane->key = key;
	return n;
}

static int64_t run_records(struct ptt_reader *reader, struct lane *lane, const struct run *run,
			   const struct ptt_columns *out, int64_t start)
{
	int64_t n = 0;

	while (lane->key < run->bound && n < run->room && lane->at != run->stop) {
		const uint8_t *p = lane->at;
		uint32_t pid = rd_u32(p + 12), tid = rd_u32(p + 16);
		uint32_t id = rd_u32(p) & PTT_ID_MASK;
		uint64_t ticks = rd_u64(p + 4), site;
		bool sound;

		if (lane->process == RD_NONE || pid != lane->pid || tid != lane->tid) {
			/* The index has added all threads: nothing is added here. */
			uint32_t process = rd_number_of(&reader->process_of, lane->trace, RD_KEY_PID | pid), thread;

			lane->pid = pid;
			lane->tid = tid;
			lane->process = process == RD_NONE ? 0 : process;
			thread = rd_number_of(&reader->thread_of, lane->process, tid);
			lane->thread = thread == RD_NONE ? 0 : thread;
		}
		site = rd_site_of(&reader->processes[lane->process].sites, rd_record_site(p), id, ticks);
		rd_emit(out, start + n, rd_time(lane->clock, ticks), lane->thread, (uint16_t)id, PTT_CPU_UNKNOWN,
			rd_record_object(p), site, (uint64_t)(uintptr_t)p | RD_PAYLOAD_RECORD);
		n++;
		lane->at += rd_record_size(p, lane->end, &sound);
		if (!lane_settle(reader, lane)) {
			lane->at = lane->end;
			break;
		}
	}
	return n;
}

/* ---- the cursor ---- */

static int cursor_lanes(struct ptt_cursor *cursor)
{
	uint32_t want = cursor->reader->stream_count;

	if (want > cursor->lane_room) {
		struct lane *lanes = realloc(cursor->lanes, want * sizeof(*lanes));
		struct node *heap;

		if (!lanes)
			return -ENOMEM;
		cursor->lanes = lanes;
		heap = realloc(cursor->heap, want * sizeof(*heap));
		if (!heap)
			return -ENOMEM;
		cursor->heap = heap;
		cursor->lane_room = want;
	}
	return 0;
}

struct ptt_cursor *ptt_cursor_create(struct ptt_reader *reader)
{
	struct ptt_cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return NULL;
	cursor->reader = reader;
	if (ptt_cursor_seek_start(cursor) < 0) {
		ptt_cursor_destroy(cursor);
		return NULL;
	}
	return cursor;
}

void ptt_cursor_destroy(struct ptt_cursor *cursor)
{
	if (!cursor)
		return;
	free(cursor->lanes);
	free(cursor->heap);
	free(cursor);
}

int ptt_cursor_seek_start(struct ptt_cursor *cursor)
{
	return ptt_cursor_seek_key(cursor, 0);
}

int ptt_cursor_seek_key(struct ptt_cursor *cursor, uint64_t key)
{
	int err = cursor_lanes(cursor);

	if (err < 0)
		return err;
	cursor->lane_count = cursor->reader->stream_count;
	for (uint32_t i = 0; i < cursor->lane_count; i++)
		lane_seek_key(cursor->reader, &cursor->lanes[i], i, key);
	heap_build(cursor);
	return 0;
}

int ptt_cursor_seek(struct ptt_cursor *cursor, const struct ptt_position *position)
{
	struct ptt_reader *reader = cursor->reader;
	const struct ptt_position want = *position;
	int err = cursor_lanes(cursor);

	if (err < 0)
		return err;
	cursor->lane_count = reader->stream_count;
	if (want.stream == RD_NONE) {
		for (uint32_t i = 0; i < cursor->lane_count; i++)
			lane_open(reader, &cursor->lanes[i], i, reader->streams[i].count);
		cursor->heap_count = 0;
		return 0;
	}
	if (want.stream >= reader->stream_count)
		return -EINVAL;
	for (uint32_t i = 0; i < cursor->lane_count; i++) {
		struct lane *lane = &cursor->lanes[i];

		/* Lanes before the named lane have already delivered their events with its key, lanes behind it have not. */
		if (i < want.stream && want.key == UINT64_MAX)
			lane_open(reader, lane, i, reader->streams[i].count);
		else
			lane_seek_key(reader, lane, i, want.key + (i < want.stream));
		if (i != want.stream)
			continue;
		if (want.packet >= reader->streams[i].count || !lane_open(reader, lane, i, want.packet) ||
		    lane->packet != want.packet)
			return -EINVAL;
		if (want.offset < sizeof(struct ptt_packet) ||
		    want.offset % (lane->stream_class == PTT_STREAM_SLOTS ? PTT_SLOT_SIZE : 4) ||
		    want.offset >= (uint64_t)(lane->end - lane->base))
			return -EINVAL;
		while (lane->at < lane->base + want.offset) {
			bool sound;

			if (lane->stream_class == PTT_STREAM_SLOTS)
				lane->at = lane->base + want.offset;
			else
				lane->at += rd_record_size(lane->at, lane->end, &sound);
			if (!lane_settle(reader, lane))
				return -EINVAL;
		}
		if (lane->at != lane->base + want.offset || lane->key != want.key)
			return -EINVAL;
	}
	heap_build(cursor);
	return 0;
}

void ptt_cursor_position(struct ptt_cursor *cursor, struct ptt_position *out)
{
	const struct lane *lane;

	*out = (struct ptt_position){ UINT64_MAX, RD_NONE, 0, 0, 0 };
	if (!cursor->heap_count)
		return;
	lane = &cursor->lanes[cursor->heap[0].lane];
	out->key = lane->key;
	out->stream = cursor->heap[0].lane;
	out->packet = lane->packet;
	out->offset = (uint32_t)(lane->at - lane->base);
}

void ptt_cursor_limit_key(struct ptt_cursor *cursor, uint64_t key)
{
	/* Before the first event with that key in the first stream. */
	cursor->limit = (struct ptt_position){ key, 0, 0, 0, 0 };
	cursor->limited = true;
}

void ptt_cursor_limit(struct ptt_cursor *cursor, const struct ptt_position *position)
{
	cursor->limit = *position;
	cursor->limited = position->stream != RD_NONE;
}

void ptt_cursor_no_limit(struct ptt_cursor *cursor)
{
	cursor->limited = false;
}

/* Applies the limit to a run of a lane. */
static void run_limit(const struct ptt_cursor *cursor, uint32_t number, struct run *run)
{
	const struct ptt_position *limit = &cursor->limit;
	const struct lane *lane = &cursor->lanes[number];
	uint64_t bound = limit->key;

	if (!cursor->limited)
		return;
	if (number < limit->stream)
		bound += bound != UINT64_MAX;
	if (number == limit->stream && limit->offset) {
		/* Up to the very event: events before it may have the same key. */
		if (lane->packet < limit->packet)
			bound += bound != UINT64_MAX;
		else if (lane->packet == limit->packet && lane->at <= lane->base + limit->offset) {
			bound += bound != UINT64_MAX;
			run->stop = lane->base + limit->offset;
		}
	}
	if (bound < run->bound)
		run->bound = bound;
}

static void run_bound(const struct ptt_cursor *cursor, uint32_t number, struct run *run)
{
	const struct node *second = &cursor->heap[1];

	run->bound = UINT64_MAX;
	run->stop = NULL;
	if (cursor->heap_count > 2 && before(&cursor->heap[2], second))
		second = &cursor->heap[2];
	/* With equal keys, the lane with the lower number goes first. */
	if (cursor->heap_count > 1)
		run->bound = second->key + (number < second->lane && second->key != UINT64_MAX);
	run_limit(cursor, number, run);
}

int64_t ptt_cursor_read(struct ptt_cursor *cursor, const struct ptt_columns *out, int64_t max)
{
	struct ptt_reader *reader = cursor->reader;
	int64_t n = 0;

	if (out->stack && cursor->heap_count) /* most events have no stack */
		memset(out->stack, 0, (size_t)max * sizeof(*out->stack));
	if (out->reading && cursor->heap_count)
		memset(out->reading, 0, (size_t)max * sizeof(*out->reading));
	while (n < max && cursor->heap_count) {
		uint32_t number = cursor->heap[0].lane;
		struct lane *lane = &cursor->lanes[number];
		struct run run;
		int64_t got;

		run_bound(cursor, number, &run);
		run.room = max - n;
		if (lane->stream_class == PTT_STREAM_RECORDS)
			got = run_records(reader, lane, &run, out, n);
		else if (reader->key_ticks)
			got = run_slots(reader, lane, &run, out, n, true);
		else
			got = run_slots(reader, lane, &run, out, n, false);
		n += got;
		if (lane->at >= lane->end)
			lane_open(reader, lane, number, lane->packet + 1);
		else if (!got)
			break; /* the limit, or the greatest key, which no bound exceeds */
		if (lane->at)
			cursor->heap[0].key = lane->key;
		else
			cursor->heap[0] = cursor->heap[--cursor->heap_count];
		if (cursor->heap_count)
			heap_down(cursor, 0);
	}
	return n;
}

int ptt_cursor_lane(struct ptt_cursor *cursor, uint32_t stream, uint32_t *packet, uint32_t *offset)
{
	const struct lane *lane;

	if (stream >= cursor->lane_count)
		return -EINVAL;
	lane = &cursor->lanes[stream];
	*packet = lane->packet;
	*offset = lane->at ? (uint32_t)(lane->at - lane->base) : 0;
	return 0;
}

int ptt_cursor_refresh(struct ptt_cursor *cursor)
{
	struct ptt_reader *reader = cursor->reader;
	uint32_t old_count = cursor->lane_count;
	int err = cursor_lanes(cursor);

	if (err < 0)
		return err;
	cursor->lane_count = reader->stream_count;
	for (uint32_t i = 0; i < cursor->lane_count; i++) {
		struct lane *lane = &cursor->lanes[i];

		if (i >= old_count) {
			lane_open(reader, lane, i, 0);
		} else if (!lane->at) {
			lane_open(reader, lane, i, lane->packet);
		} else {
			size_t at = (size_t)(lane->at - lane->base);

			/* The file may now be mapped at another address. */
			lane_open(reader, lane, i, lane->packet);
			lane->at = lane->base + at;
			lane_next(reader, lane, i);
		}
	}
	heap_build(cursor);
	return 0;
}
