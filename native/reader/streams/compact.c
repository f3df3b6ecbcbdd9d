/* SPDX-License-Identifier: MIT */
/* compact.c - compact stream files: the plain packets come to memory when their events are first needed. */
/*
 * The index lays the plain packets of a compact file one behind the other, as in the plain file, in memory without pages. So
 * all other parts of the reader find packets where they expect them. A packet gets its pages when it is decoded, and keeps them:
 * columns hold addresses inside. Each byte of a file stands for 16 bytes of plain packets at most. The reader decodes no packet
 * that brings the pages above a limit, so a small file from a stranger does not take all memory.
 */
#include "../traceset.h"

#include "../../ring/compact/compact.h"

#define ROOM_MIN (UINT64_C(1) << 20)

bool rd_is_compact(const uint8_t *data, uint64_t size)
{
	return size >= sizeof(struct ptt_coded) && rd_u32(data) == PTT_COMPACT_MAGIC;
}

const char *rd_coded_fault(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, struct ptt_packet *head,
			   uint64_t *size)
{
	struct ptt_coded coded;

	if (file->size - at < sizeof(coded))
		return "the file ends inside the head of a packet";
	if (!ptt_coded_read(file->coded + at, file->size - at, &coded))
		return rd_u32(file->coded + at) == PTT_COMPACT_MAGIC ? "this packet is damaged or cut off" : "no packet starts here";
	*head = coded.head;
	*size = coded.prefix.size;
	return rd_head_fault(trace, head, head->packet_size / 8);
}

uint64_t rd_coded_in(const struct rd_trace *trace, const struct rd_file *file, uint64_t at, uint64_t end)
{
	static const uint32_t magic = PTT_COMPACT_MAGIC;

	for (; at < end; at++) {
		const uint8_t *match = memmem(file->coded + at, end - at, &magic, sizeof(magic));
		struct ptt_packet head;
		uint64_t size;

		if (!match)
			break;
		at = (uint64_t)(match - file->coded);
		if (at % 8 == 0 && !rd_coded_fault(trace, file, at, &head, &size))
			return at;
	}
	return end;
}

int rd_plain_room(struct rd_file *file, uint64_t more)
{
	uint64_t wanted = file->plain + more + 16, room = file->room ? file->room : ROOM_MIN;
	void *map;

	if (wanted <= file->room)
		return 0;
	while (room < wanted)
		room *= 2;
	map = file->room ? mremap((void *)(uintptr_t)file->map, file->room, room, MREMAP_MAYMOVE)
			 : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	file->map = map;
	file->room = room;
	return 0;
}

bool rd_may_decode(struct ptt_reader *reader, const struct rd_packet *packet)
{
	/* relaxed: a count and a flag, which order nothing */
	if (__atomic_add_fetch(&reader->decoded, packet->size, __ATOMIC_RELAXED) <= reader->decoded_max)
		return true;
	__atomic_store_n(&reader->files[packet->file].too_large, true, __ATOMIC_RELAXED);
	return false;
}

bool rd_decode(struct ptt_reader *reader, struct rd_packet *packet)
{
	const struct rd_file *file = &reader->files[packet->file];
	const uint8_t *data = file->coded + packet->place;
	struct ptt_coded coded;

	/* others may have changed the file since it was indexed */
	return ptt_coded_read(data, file->size - packet->place, &coded) && coded.head.packet_size / 8 == packet->size &&
	       ptt_coded_unpack(&coded, data, (uint8_t *)(uintptr_t)file->map + packet->offset);
}
