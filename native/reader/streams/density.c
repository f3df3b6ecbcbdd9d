/* SPDX-License-Identifier: MIT */
/* density.c - the density of events and lost events in time, from the heads of packets. */
#include "../traceset.h"

/* Spreads n over the bins of [begin, end], by their shares of the time. */
static void spread(uint64_t *bins, uint32_t count, int64_t from, int64_t width, int64_t begin, int64_t end, uint64_t n)
{
	double step = (double)width, at = ((double)begin - (double)from) / step;
	double last = ((double)end - (double)from) / step;
	uint32_t first_bin = at <= 0 ? 0 : at < count ? (uint32_t)at : count - 1;
	uint32_t last_bin = last <= 0 ? 0 : last < count ? (uint32_t)last : count - 1;
	uint64_t left = n;

	for (uint32_t i = first_bin; i < last_bin; i++) {
		double share = ((i == first_bin ? first_bin + 1 - at : 1) / (last - at)) * (double)n;
		uint64_t part = share > 0 && share < (double)left ? (uint64_t)share : 0;

		bins[i] += part;
		left -= part;
	}
	bins[last_bin] += left;
}

int ptt_reader_density(struct ptt_reader *reader, int64_t from, int64_t width, uint64_t *bins, uint64_t *lost,
		       uint32_t count)
{
	if (width <= 0 || !count)
		return -EINVAL;
	memset(bins, 0, count * sizeof(*bins));
	memset(lost, 0, count * sizeof(*lost));
	for (uint32_t s = 0; s < reader->stream_count; s++) {
		const struct rd_stream *stream = &reader->streams[s];
		const struct rd_clock *clock = &reader->traces[stream->trace].clock;
		uint64_t discarded = 0;

		for (uint32_t i = 0; i < stream->count; i++) {
			const struct rd_packet *p = &stream->packets[i];
			int64_t begin = rd_time(clock, p->begin), end = rd_time(clock, p->end);

			spread(bins, count, from, width, begin, end, p->events);
			if (p->discarded <= discarded)
				continue;
			/* The events were lost at some time since the packet before. */
			if (i)
				begin = rd_time(clock, p[-1].end);
			spread(lost, count, from, width, begin < end ? begin : end, end, p->discarded - discarded);
			discarded = p->discarded;
		}
	}
	return 0;
}
