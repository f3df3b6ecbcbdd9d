/* SPDX-License-Identifier: MIT */
/* index.c - finds the packets of stream files and checks them. */
/*
 * Heads of packets are trusted as long as they are plausible. The CRC of a packet is checked when its events are first
 * needed, so large traces open quickly. Heads may contradict one another: no packet at the end of the packet before, or
 * time going back. Then the CRC decides at once which packet is damaged, and the search goes on from the next bytes that
 * look like a packet.
 */
#include "../decode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../ring/layout/packet_crc.h"

#define HEAD sizeof(struct ptt_packet)

/* Check a packet whose events are in place. */
static bool check_plain(struct ptt_reader *reader, struct rd_packet *packet, bool good)
{
	uint32_t unchecked = RD_UNCHECKED;

	good = good && ptt_packet_crc_is_right(rd_data(reader, packet), packet->size);
	/* release: pairs with the load of packet->state; a thread that sees GOOD sees the plain packet. One thread reports it. */
	if (__atomic_compare_exchange_n((uint32_t *)&packet->state, &unchecked, good ? RD_GOOD : RD_BAD, false,
					__ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
	    !good)
		rd_damage(reader, packet->file, packet->place, packet->size,
			  "the checksum of this packet is wrong; its events are left out");
	return good;
}

bool rd_check(struct ptt_reader *reader, struct rd_packet *packet)
{
	pthread_mutex_t *lock = &reader->decode_lock[packet->place / 4096 % RD_DECODE_LOCKS];

	if (packet->state != RD_UNCHECKED)
		return packet->state == RD_GOOD;
	if (!reader->files[packet->file].coded)
		return check_plain(reader, packet, true);
	/* no second thread may write to the plain packet while the first reads it */
	pthread_mutex_lock(lock);
	if (packet->state == RD_UNCHECKED && rd_may_decode(reader, packet))
		check_plain(reader, packet, rd_decode(reader, packet));
	pthread_mutex_unlock(lock);
	return packet->state == RD_GOOD;
}

static int map_file(struct rd_file *file)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	struct ptt_guard *guard;
	struct stat st;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		err = S_ISREG(st.st_mode) ? -errno : -EINVAL;
		goto out;
	}
	/* Never smaller than before: indexed packets must stay where they are. */
	if ((uint64_t)st.st_size <= file->size)
		goto out;
	guard = ptt_guard_map(fd, (size_t)st.st_size);
	if (!guard) {
		err = -errno;
		goto out;
	}
	/* A cut of the old mapping was a cut of the file. */
	file->cut = rd_file_cut(file);
	ptt_guard_unmap(file->guard);
	file->guard = guard;
	file->size = (uint64_t)st.st_size;
	if (file->coded || (!file->map && rd_is_compact(ptt_guard_data(guard), file->size)))
		file->coded = ptt_guard_data(guard);
	else
		file->map = ptt_guard_data(guard);
out:
	close(fd);
	return err;
}

/*
 * The begin and end of the next part of a file with data, at `at` or behind it. A file from a stranger may be a hole of
 * terabytes. A file system without holes has one part.
 */
static uint64_t part_with_data(int fd, uint64_t at, uint64_t size, uint64_t *end)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;

	*end = size;
	if (data < 0)
		return errno == ENXIO ? size : at;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole > data && (uint64_t)hole < size)
		*end = (uint64_t)hole;
	return (uint64_t)data;
}

/* The next place in a part of a file, at or behind `at`, that looks like a packet; `end` if there is none. */
static uint64_t packet_in(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, uint64_t end)
{
	static const uint8_t magic[4] = { 0xc1, 0x1f, 0xfc, 0xc1 };

	for (; at + HEAD <= file->size && at < end; at += 4) {
		const uint8_t *match = memmem(file->map + at, end - at, magic, sizeof(magic));
		struct ptt_packet head;

		if (!match)
			break;
		at = (uint64_t)(match - file->map);
		if (file->size - at < HEAD)
			break;
		memcpy(&head, match, HEAD);
		if (at % 8 == 0 && !rd_head_fault(trace, &head, file->size - at))
			return at;
		at &= ~UINT64_C(3);
	}
	return end;
}

/* The next place after `at` that looks like a packet in the coding of the file, or the end of the file. */
static uint64_t resync(const struct rd_trace *trace, const struct rd_file *file, uint64_t at)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	uint64_t end;

	for (at += 4; at < file->size; at = end) {
		at = part_with_data(fd, at, file->size, &end);
		if (at >= end)
			continue;
		at = file->coded ? rd_coded_in(trace, file, at, end) : packet_in(trace, file, at, end);
		if (at < end)
			break;
	}
	if (fd >= 0)
		close(fd);
	return at < file->size ? at : file->size;
}

/* Adds the threads of a packet of records, and reports broken records. */
static void scan_records(struct ptt_reader *reader, struct rd_packet *packet, uint32_t trace)
{
	const uint8_t *base = rd_data(reader, packet);
	const uint8_t *p = base + HEAD, *end = base + packet->content;
	uint32_t pid = 0, tid = 0, last = RD_NONE;

	while (p < end) {
		bool sound;
		uint32_t size = rd_record_size(p, end, &sound);

		if (!size) {
			rd_damage(reader, packet->file, packet->offset + (uint64_t)(p - base),
				  (uint64_t)(end - p), "no record has this length; the rest of the packet is left out");
			return;
		}
		if (!sound)
			rd_damage(reader, packet->file, packet->offset + (uint64_t)(p - base), size,
				  "the checksum of this record is wrong; it is left out");
		else if (last == RD_NONE || pid != rd_u32(p + 12) || tid != rd_u32(p + 16)) {
			pid = rd_u32(p + 12);
			tid = rd_u32(p + 16);
			last = rd_thread(reader, rd_process_of_pid(reader, trace, pid), tid);
		}
		p += size;
	}
}

/* @at: offset in the plain file; @place: offset in the file */
static int add_packet(struct ptt_reader *reader, uint32_t file, uint64_t at, uint64_t place, const struct ptt_packet *head)
{
	struct rd_stream *stream = &reader->streams[reader->files[file].stream];
	struct rd_packet *p;

	if (rd_grow((void **)&stream->packets, &stream->room, stream->count, sizeof(*p)) < 0)
		return -ENOMEM;
	p = &stream->packets[stream->count];
	*p = (struct rd_packet){
		.offset = at, .place = place, .begin = head->timestamp_begin, .end = head->timestamp_end,
		.discarded = head->events_discarded, .file = file, .size = (uint32_t)(head->packet_size / 8),
		.events = head->event_count, .thread = RD_NONE, .process = RD_NONE,
	};
	if (!stream->count)
		stream->stream_class = head->stream_id;
	else if (stream->stream_class != head->stream_id) {
		rd_damage(reader, file, place, p->size, "this packet is of another kind than its stream");
		return 0;
	}
	if (head->stream_id == PTT_STREAM_SLOTS) {
		/* The content may end inside the last slot; the slot is whole in the packet. */
		uint64_t content = (head->content_size / 8 + 15) & ~UINT64_C(15);

		p->content = (uint32_t)(content < p->size ? content : p->size & ~15u);
		p->process = rd_process(reader, stream->trace, head->process, head->pid);
		p->thread = rd_thread(reader, p->process, head->tid);
		if (p->thread == RD_NONE)
			return -ENOMEM;
	} else {
		p->content = (uint32_t)(head->content_size / 8) & ~3u;
	}
	if (stream->count && p->begin < p[-1].end && rd_check(reader, p - 1) && rd_check(reader, p))
		rd_damage(reader, file, place, 0, "this packet begins before the one before it ends");
	stream->count++;
	if (head->stream_id == PTT_STREAM_RECORDS && rd_check(reader, p))
		scan_records(reader, p, stream->trace);
	return 0;
}

/* The reason why there is no packet at an offset, or NULL; then set its plain head and its size in the file. */
static const char *packet_fault(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, struct ptt_packet *head,
				uint64_t *size)
{
	uint64_t left = file->size - at;

	if (file->coded)
		return rd_coded_fault(trace, file, at, head, size);
	if (left < HEAD)
		return "the file ends inside the head of a packet";
	memcpy(head, file->map + at, HEAD);
	*size = head->packet_size / 8;
	return rd_head_fault(trace, head, left);
}

/* Add the packet at the end of the indexed part of a file. @size: its bytes in the file. Return: 0 or -errno. */
static int index_packet(struct ptt_reader *reader, uint32_t number, const struct ptt_packet *head, uint64_t size)
{
	struct rd_file *file = &reader->files[number];
	uint64_t at = file->indexed, plain = head->packet_size / 8;
	int err = file->coded ? rd_plain_room(file, plain) : 0;

	if (!err)
		err = add_packet(reader, number, file->coded ? file->plain : at, at, head);
	if (err < 0)
		return err;
	if (file->coded)
		file->plain += (plain + 15) & ~UINT64_C(15);
	file->indexed = at + size;
	return 0;
}

static int index_file(struct ptt_reader *reader, uint32_t number, bool running)
{
	struct rd_file *file = &reader->files[number];
	const struct rd_stream *stream = &reader->streams[file->stream];
	const struct rd_trace *trace = &reader->traces[stream->trace];

	while (file->indexed < file->size) {
		uint64_t at = file->indexed, size, next;
		struct ptt_packet head;
		const char *fault = packet_fault(trace, file, at, &head, &size);

		if (!fault) {
			int err = index_packet(reader, number, &head, size);

			if (err < 0)
				return err;
			continue;
		}
		/* A wrong size of the packet before may have led here. */
		if (stream->count) {
			struct rd_packet *before = &stream->packets[stream->count - 1];

			if (before->file == number && before->state == RD_UNCHECKED &&
			    !packet_fault(trace, file, before->place, &head, &size) && before->place + size == at &&
			    !rd_check(reader, before) && before->state == RD_BAD) {
				file->indexed = resync(trace, file, before->place);
				continue;
			}
		}
		next = resync(trace, file, at);
		if (next == file->size && running)
			return 0;
		rd_damage(reader, number, at, next - at, fault);
		file->indexed = next;
	}
	return 0;
}

int ptt_reader_index(struct ptt_reader *reader, int running)
{
	for (uint32_t i = 0; i < reader->file_count; i++) {
		int err = map_file(&reader->files[i]);

		if (err == -ENOMEM)
			return err;
		if (err < 0 && !reader->files[i].size) {
			char reason[96];

			snprintf(reason, sizeof(reason), "cannot be read: %s", strerror(-err));
			rd_damage(reader, i, 0, 0, reason);
		}
		err = index_file(reader, i, running);
		if (err < 0)
			return err;
	}
	return 0;
}

int ptt_reader_verify(struct ptt_reader *reader)
{
	for (uint32_t i = 0; i < reader->stream_count; i++)
		for (uint32_t k = 0; k < reader->streams[i].count; k++)
			rd_check(reader, &reader->streams[i].packets[k]);
	return (int)reader->damage_count;
}
