/* SPDX-License-Identifier: MIT */
/* copy.c - writes a part of a stream as a new stream, for cut, split and merge. */
/*
 * Slots and records stay as they are; heads are made anew. Time stamps change only if traces with different clocks are
 * merged; then the checksums of records change too.
 */
#include "../decode.h"

#include <stddef.h>
#include <unistd.h>

#include "../../ring/layout/crc32c.h"
#include "../../ring/record/record.h"

#define HEAD sizeof(struct ptt_packet)

struct copier {
	struct ptt_reader *reader;
	const struct ptt_copy *what;
	int fd;
	uint8_t *buffer;
	size_t room;
	uint64_t next; /* index of the next event in what->events */
	uint64_t sequence;
	uint64_t discarded; /* events discarded before the first packet that is copied */
	int64_t events;
};

int rd_write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

struct content {
	size_t size;
	uint64_t first; /* ticks, after the shift */
	uint64_t last;
	uint32_t events;
};

static uint64_t new_ticks(const struct ptt_copy *what, uint64_t ticks)
{
	__int128 product = (__int128)(int64_t)(ticks - what->tick_origin) * what->tick_mul;
	__int128 scaled = product / what->tick_div;

	scaled -= product < 0 && scaled * what->tick_div != product;
	return (uint64_t)scaled + what->tick_base;
}

static void put_ticks(uint8_t *slot, uint64_t w0, uint64_t ticks)
{
	w0 = (w0 & ~(PTT_TIME_MASK << PTT_TIME_SHIFT)) | (ticks & PTT_TIME_MASK) << PTT_TIME_SHIFT;
	memcpy(slot, &w0, sizeof(w0));
}

/* Is the event at an offset of a packet to be copied? Call it in the order of the events. */
static bool is_chosen(struct copier *copier, uint32_t packet, size_t offset)
{
	const struct ptt_copy *what = copier->what;
	uint64_t place = (uint64_t)packet << 32 | offset;

	if (!what->events)
		return true;
	while (copier->next < what->event_count && what->events[copier->next] < place)
		copier->next++;
	return copier->next < what->event_count && what->events[copier->next] == place;
}

/* Copies up to @end, or to the first event that is too late for a packet that begins at @begin. Returns the end. */
static const uint8_t *copy_slots(struct copier *copier, const struct rd_packet *packet, uint32_t number,
				 const uint8_t *p, const uint8_t *end, uint64_t begin, struct content *out)
{
	const uint8_t *base = rd_data(copier->reader, packet);
	uint8_t *to = copier->buffer + HEAD;
	bool chosen = !copier->what->events;

	for (; p < end; p += PTT_SLOT_SIZE, out->size += chosen ? PTT_SLOT_SIZE : 0) {
		uint64_t w0 = rd_u64(p), ticks;

		/* A slot that begins no event belongs to the event before it. */
		if (!rd_slot_skipped(w0))
			chosen = is_chosen(copier, number, (size_t)(p - base));
		if (!chosen)
			continue;
		memcpy(to + out->size, p, PTT_SLOT_SIZE);
		if ((w0 & PTT_ID_MASK) == PTT_ID_STACK)
			put_ticks(to + out->size, w0, out->last);
		if (rd_slot_skipped(w0))
			continue;
		ticks = new_ticks(copier->what, rd_slot_ticks(w0, packet->begin));
		if (!out->events)
			out->first = ticks;
		if (ticks - (begin < out->first ? begin : out->first) > PTT_TIME_MASK)
			break;
		out->events++;
		out->last = ticks;
		put_ticks(to + out->size, w0, ticks);
	}
	return p;
}

static bool is_wanted(const struct ptt_copy *what, uint32_t thread)
{
	return !what->threads || (thread != RD_NONE && what->threads[thread]);
}

/* Does a record belong to a wanted thread? */
static bool wanted(const struct copier *copier, uint32_t trace, const uint8_t *p)
{
	uint32_t process = rd_process_of_pid(copier->reader, trace, rd_u32(p + 12));

	return !copier->what->threads || is_wanted(copier->what, rd_thread(copier->reader, process, rd_u32(p + 16)));
}

static void copy_records(struct copier *copier, uint32_t trace, uint32_t number, const uint8_t *base,
			 const uint8_t *p, const uint8_t *end, struct content *out)
{
	uint8_t *to = copier->buffer + HEAD;
	uint32_t size;
	bool sound;

	for (; (size = rd_record_size(p, end, &sound)) != 0; p += size) {
		uint64_t ticks = new_ticks(copier->what, rd_u64(p + 4));
		uint32_t sum;

		if (!sound || !wanted(copier, trace, p) || !is_chosen(copier, number, (size_t)(p - base)))
			continue;
		memcpy(to, p, size);
		memcpy(to + 4, &ticks, sizeof(ticks));
		sum = ptt_record_checksum((const uint32_t *)(const void *)to, size / 4 - 1);
		memcpy(to + size - 4, &sum, sizeof(sum));
		if (!out->events++)
			out->first = ticks;
		out->last = ticks;
		to += size;
		out->size += size;
	}
}

static int write_packet(struct copier *copier, const struct rd_packet *packet, const struct content *content,
			bool whole)
{
	const struct ptt_copy *what = copier->what;
	size_t size = (HEAD + content->size + 15) & ~(size_t)15;
	struct ptt_packet head;

	memcpy(&head, rd_data(copier->reader, packet), HEAD);
	memcpy(head.uuid, what->uuid, sizeof(head.uuid));
	head.stream_instance_id = what->instance;
	head.timestamp_begin = whole ? new_ticks(what, packet->begin) : content->first;
	head.timestamp_end = whole ? new_ticks(what, packet->end) : content->last;
	head.content_size = (HEAD + content->size) * 8;
	head.packet_size = size * 8;
	head.events_discarded = packet->discarded - copier->discarded;
	head.packet_seq_num = copier->sequence++;
	head.process += what->process_shift;
	head.event_count = content->events;
	head.crc = 0;
	memset(copier->buffer + HEAD + content->size, 0, size - HEAD - content->size);
	memcpy(copier->buffer, &head, HEAD);
	head.crc = ptt_crc32c(0, copier->buffer, size);
	memcpy(copier->buffer + offsetof(struct ptt_packet, crc), &head.crc, sizeof(head.crc));
	copier->events += content->events;
	return rd_write_all(copier->fd, copier->buffer, size);
}

static int copy_slot_packet(struct copier *copier, const struct rd_packet *packet, uint32_t number, const uint8_t *p,
			    const uint8_t *end, bool whole)
{
	uint64_t begin = whole ? new_ticks(copier->what, packet->begin) : UINT64_MAX;
	int err = 0;

	while (p < end && !err) {
		struct content content = { 0 };

		p = copy_slots(copier, packet, number, p, end, begin, &content);
		/* A part of a packet begins with its first event. */
		whole = whole && p == end;
		if (content.events)
			err = write_packet(copier, packet, &content, whole);
		begin = UINT64_MAX;
	}
	return err;
}

static int copy_packet(struct copier *copier, const struct rd_stream *stream, uint32_t number)
{
	const struct ptt_copy *what = copier->what;
	struct rd_packet *packet = &stream->packets[number];
	const uint8_t *base = rd_data(copier->reader, packet);
	uint32_t from = number == what->from_packet && what->from_offset ? what->from_offset : (uint32_t)HEAD;
	uint32_t to = number == what->to_packet ? what->to_offset : packet->content;
	struct content content = { 0 };

	if (!rd_check(copier->reader, packet) || from < HEAD || to > packet->content || from >= to)
		return 0;
	if (stream->stream_class == PTT_STREAM_SLOTS && !is_wanted(what, packet->thread))
		return 0;
	if (packet->size + 16 > copier->room) {
		uint8_t *bigger = realloc(copier->buffer, packet->size + 16);

		if (!bigger)
			return -ENOMEM;
		copier->buffer = bigger;
		copier->room = packet->size + 16;
	}
	if (stream->stream_class == PTT_STREAM_SLOTS)
		return copy_slot_packet(copier, packet, number, base + from, base + to,
					from == HEAD && to == packet->content);
	copy_records(copier, stream->trace, number, base, base + from, base + to, &content);
	if (!content.events)
		return 0;
	return write_packet(copier, packet, &content, from == HEAD && to == packet->content);
}

int64_t ptt_copy_stream(struct ptt_reader *reader, uint32_t number, const struct ptt_copy *what, int fd)
{
	struct copier copier = { .reader = reader, .what = what, .fd = fd, .sequence = what->sequence };
	const struct rd_stream *stream;
	int err = 0;

	if (number >= reader->stream_count || !what->tick_div)
		return -EINVAL;
	stream = &reader->streams[number];
	if (what->from_packet && what->from_packet <= stream->count)
		copier.discarded = stream->packets[what->from_packet - 1].discarded;
	for (uint32_t i = what->from_packet; err == 0 && i < stream->count && i <= what->to_packet; i++)
		err = copy_packet(&copier, stream, i);
	free(copier.buffer);
	return err < 0 ? err : copier.events;
}
