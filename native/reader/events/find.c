/* SPDX-License-Identifier: MIT */
/* find.c - finds events of a few types in all packets, without sorting them. */
#include "../decode.h"

struct search {
	struct ptt_reader *reader;
	const uint8_t *ids;
	const struct ptt_columns *out;
	int64_t count;
	int64_t room;
};

/* The number of an event's stack, 0 if it has none. */
static uint32_t stack_of(const uint8_t *p, const uint8_t *end)
{
	while ((p += PTT_SLOT_SIZE) < end && rd_slot_skipped(rd_u64(p)))
		if ((rd_u16(p) & PTT_ID_MASK) == PTT_ID_STACK)
			return rd_slot_stack(rd_u64(p + 8));
	return 0;
}

static void take(struct search *search, const struct rd_packet *packet, const struct rd_clock *clock,
		 const uint8_t *p, const uint8_t *end)
{
	const struct ptt_columns *out = search->out;
	const struct rd_sites *sites = &search->reader->processes[packet->process].sites;
	uint64_t w0 = rd_u64(p), w1 = rd_u64(p + 8), ticks = rd_slot_ticks(w0, packet->begin);
	uint64_t address = rd_sites_find(sites, (uint32_t)(w1 >> PTT_SITE_SHIFT));
	uint32_t id = w0 & PTT_ID_MASK;
	int64_t i = search->count++;

	rd_emit(out, i, rd_time(clock, ticks), packet->thread, (uint16_t)id, w0 >> PTT_CPU_SHIFT & PTT_CPU_MASK,
		w1 & PTT_OBJECT_MASK, rd_site_of(sites, address, id, ticks), rd_payload(p, end, id));
	if (out->stack)
		out->stack[i] = stack_of(p, end);
	if (out->reading)
		out->reading[i] = id == RD_SCHED_RAN ? rd_reading_behind(p, end) : 0;
}

static void take_record(struct search *search, uint32_t trace, const struct rd_clock *clock, const uint8_t *p)
{
	const struct ptt_columns *out = search->out;
	struct ptt_reader *reader = search->reader;
	/* The index has added both. */
	uint32_t process = rd_number_of(&reader->process_of, trace, RD_KEY_PID | rd_u32(p + 12));
	uint32_t thread = process == RD_NONE ? RD_NONE : rd_number_of(&reader->thread_of, process, rd_u32(p + 16));
	uint32_t id = rd_u32(p) & PTT_ID_MASK;
	uint64_t ticks = rd_u64(p + 4);
	int64_t i = search->count;

	if (thread == RD_NONE)
		return;
	search->count++;
	rd_emit(out, i, rd_time(clock, ticks), thread, (uint16_t)id, PTT_CPU_UNKNOWN, rd_record_object(p),
		rd_site_of(&reader->processes[process].sites, rd_record_site(p), id, ticks),
		(uint64_t)(uintptr_t)p | RD_PAYLOAD_RECORD);
	if (out->stack)
		out->stack[i] = 0;
	if (out->reading)
		out->reading[i] = 0;
}

/* search_packet() for records. */
static bool search_records(struct search *search, struct rd_packet *packet, uint32_t trace, const struct rd_clock *clock)
{
	const uint8_t *p = rd_data(search->reader, packet) + sizeof(struct ptt_packet);
	const uint8_t *end = rd_data(search->reader, packet) + packet->content;
	int64_t before = search->count;
	bool sound;

	if (!rd_check(search->reader, packet))
		return true;
	for (uint32_t size; p < end && (size = rd_record_size(p, end, &sound)); p += size) {
		if (!sound || !search->ids[rd_u32(p) & PTT_ID_MASK])
			continue;
		if (search->count == search->room) {
			search->count = before;
			return false;
		}
		take_record(search, trace, clock, p);
	}
	return true;
}

/* Returns false if there is no room for all wanted events of a packet. */
static bool search_packet(struct search *search, struct rd_packet *packet, const struct rd_clock *clock)
{
	const uint8_t *p = rd_data(search->reader, packet) + sizeof(struct ptt_packet);
	const uint8_t *end = rd_data(search->reader, packet) + packet->content;
	int64_t matches = 0;

	if (packet->thread == RD_NONE || !rd_check(search->reader, packet))
		return true;
	for (const uint8_t *q = p; q < end; q += PTT_SLOT_SIZE)
		matches += search->ids[rd_u16(q) & PTT_ID_MASK];
	if (matches > search->room - search->count)
		return false;
	for (; matches && p < end; p += PTT_SLOT_SIZE)
		if (search->ids[rd_u16(p) & PTT_ID_MASK]) {
			take(search, packet, clock, p, end);
			matches--;
		}
	return true;
}

int64_t ptt_reader_find(struct ptt_reader *reader, const uint8_t *ids, uint64_t budget, uint64_t *next,
			const struct ptt_columns *out, int64_t room)
{
	struct search search = { reader, ids, out, 0, room };
	uint32_t round = (uint32_t)(*next >> 32), stream = (uint32_t)*next;
	uint64_t searched = 0;
	bool more = true, fits;

	/* In rounds, one packet of each stream: names are set early in a thread's life. */
	for (; more; round++, stream = 0) {
		more = false;
		for (; stream < reader->stream_count; stream++) {
			struct rd_stream *s = &reader->streams[stream];

			if (round >= s->count)
				continue;
			more = true;
			*next = (uint64_t)round << 32 | stream;
			if (searched >= budget) {
				*next = UINT64_MAX;
				return search.count;
			}
			fits = s->stream_class == PTT_STREAM_RECORDS ?
				       search_records(&search, &s->packets[round], s->trace, &reader->traces[s->trace].clock) :
				       search_packet(&search, &s->packets[round], &reader->traces[s->trace].clock);
			if (!fits)
				return search.count;
			searched += s->packets[round].size;
		}
	}
	*next = UINT64_MAX;
	return search.count;
}
