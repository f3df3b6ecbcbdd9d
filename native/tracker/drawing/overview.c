/* SPDX-License-Identifier: MIT */
/* overview.c - the whole trace in a fixed number of bins, which become wider as the trace becomes longer. */
#include "drawing.h"

#define HALF (PTT_DETAIL_BINS / 2)

/* Merges pairs of bins until a time lies in a bin. */
static void widen(struct dt_overview *o, int64_t ts)
{
	while ((uint64_t)ts - (uint64_t)o->begin >= (uint64_t)o->width * PTT_DETAIL_BINS &&
	       o->width < INT64_MAX / (2 * PTT_DETAIL_BINS)) {
		for (uint32_t i = 0; i < HALF; i++) {
			const struct ptt_detail_bin *a = &o->bins[2 * i], *b = &o->bins[2 * i + 1];

			o->bins[i] = (struct ptt_detail_bin){
				a->events + b->events,
				{ a->wait_ns[0] + b->wait_ns[0], a->wait_ns[1] + b->wait_ns[1],
				  a->wait_ns[2] + b->wait_ns[2] },
			};
		}
		memset(&o->bins[HALF], 0, HALF * sizeof(o->bins[0]));
		o->width *= 2;
	}
}

/* The bin of a time. Times outside count for the first or the last bin. */
static uint32_t bin_of(const struct dt_overview *o, int64_t ts)
{
	uint64_t bin;

	if (ts < o->begin)
		return 0;
	bin = ((uint64_t)ts - (uint64_t)o->begin) / (uint64_t)o->width;
	return bin < PTT_DETAIL_BINS ? (uint32_t)bin : PTT_DETAIL_BINS - 1;
}

static void begin_at(struct dt_overview *o, int64_t ts)
{
	if (o->used)
		return;
	o->begin = ts;
	o->width = 64;
	o->used = 1;
}

void dt_overview_events(struct dt_overview *o, const int64_t *ts, int64_t n)
{
	int64_t low = 0, high = -1;
	uint32_t bin = 0;

	if (n)
		begin_at(o, ts[0]);
	for (int64_t i = 0; i < n; i++) {
		/* Events come in order, so most events lie in the bin of the event before. */
		if (ts[i] < low || ts[i] >= high) {
			if (ts[i] > o->begin)
				widen(o, ts[i]);
			bin = bin_of(o, ts[i]);
			low = (int64_t)((uint64_t)o->begin + bin * (uint64_t)o->width);
			high = (int64_t)((uint64_t)low + (uint64_t)o->width);
		}
		o->bins[bin].events++;
	}
}

void dt_overview_wait(struct dt_overview *o, int64_t begin, int64_t end, uint32_t which)
{
	uint32_t last;

	begin_at(o, begin);
	if (begin < o->begin)
		begin = o->begin;
	if (end <= begin)
		return;
	widen(o, end);
	last = bin_of(o, end);
	for (uint32_t i = bin_of(o, begin); i <= last; i++) {
		int64_t from = (int64_t)((uint64_t)o->begin + i * (uint64_t)o->width);
		int64_t to = i < PTT_DETAIL_BINS - 1 ? (int64_t)((uint64_t)from + (uint64_t)o->width) : end;

		if (from < begin)
			from = begin;
		if (to > end)
			to = end;
		if (to > from)
			o->bins[i].wait_ns[which] += (uint64_t)to - (uint64_t)from;
	}
}
