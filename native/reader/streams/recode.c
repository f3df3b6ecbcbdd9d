/* SPDX-License-Identifier: MIT */
/* recode.c - a plain stream file as a compact stream file, and back, packet by packet and bit for bit. */
#include "../traceset.h"

#include <sys/stat.h>

#include "../../ring/compact/compact.h"
#include "../../ring/layout/packet_crc.h"

struct recoder {
	const uint8_t *data;
	uint64_t size;
	uint8_t *plain, *coded;
	uint64_t plain_room, coded_room;
};

static bool has_room(uint8_t **data, uint64_t *room, uint64_t wanted)
{
	uint8_t *more = wanted > *room ? realloc(*data, wanted) : *data;

	if (!more)
		return false;
	*data = more;
	*room = wanted > *room ? wanted : *room;
	return true;
}

/* Bring the packet at @at to @r->plain. Return: its size in the file, -ENOMEM, or -EBADMSG if it is damaged. */
static int64_t read_packet(struct recoder *r, uint64_t at, uint64_t *size)
{
	uint64_t left = r->size - at, step;
	struct ptt_packet head;
	struct ptt_coded coded;

	if (ptt_coded_read(r->data + at, left, &coded)) {
		head = coded.head;
		step = coded.prefix.size;
	} else if (left >= sizeof(head)) {
		memcpy(&head, r->data + at, sizeof(head));
		step = head.packet_size / 8;
		coded.prefix.magic = 0;
	} else {
		return -EBADMSG;
	}
	*size = head.packet_size / 8;
	if (*size > PTT_COMPACT_PLAIN_MAX || step > left || rd_head_fault(NULL, &head, *size))
		return -EBADMSG;
	if (!has_room(&r->plain, &r->plain_room, *size))
		return -ENOMEM;
	if (coded.prefix.magic != PTT_COMPACT_MAGIC) {
		memcpy(r->plain, r->data + at, *size);
		/* others may have changed the file since: the head whose sizes were checked counts */
		memcpy(r->plain, &head, sizeof(head));
	} else if (!ptt_coded_unpack(&coded, r->data + at, r->plain)) {
		return -EBADMSG;
	}
	return ptt_packet_crc_is_right(r->plain, *size) ? (int64_t)step : -EBADMSG;
}

static int64_t recode(struct recoder *r, int to, bool compact, uint64_t *at)
{
	uint64_t written = 0, size;

	while (*at < r->size) {
		int64_t step = read_packet(r, *at, &size), err;

		if (step < 0)
			return step;
		if (compact) {
			if (!has_room(&r->coded, &r->coded_room, PTT_COMPACT_MAX(size)))
				return -ENOMEM;
			size = ptt_compact_encode(r->plain, r->coded);
		}
		err = rd_write_all(to, compact ? r->coded : r->plain, size);
		if (err)
			return err;
		*at += (uint64_t)step;
		written += size;
	}
	return (int64_t)written;
}

int64_t ptt_recode(int from, int to, int compact, uint64_t *at)
{
	struct recoder r = { 0 };
	struct ptt_guard *guard = NULL;
	struct stat st;
	int64_t written;

	*at = 0;
	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r.size = (uint64_t)st.st_size;
	if (r.size) {
		guard = ptt_guard_map(from, (size_t)r.size);
		if (!guard)
			return -errno;
		r.data = ptt_guard_data(guard);
	}
	written = recode(&r, to, compact, at);
	if (guard)
		ptt_guard_unmap(guard);
	free(r.plain);
	free(r.coded);
	return written;
}
