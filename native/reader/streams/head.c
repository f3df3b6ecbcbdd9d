/* SPDX-License-Identifier: MIT */
/* head.c - is this the head of a packet? */
#include "../traceset.h"

#define HEAD sizeof(struct ptt_packet)

const char *rd_head_fault(const struct rd_trace *trace, const struct ptt_packet *h, uint64_t left)
{
	if (h->magic != PTT_CTF_MAGIC)
		return "no packet starts here";
	if (trace && trace->has_uuid && memcmp(h->uuid, trace->uuid, sizeof(h->uuid)) != 0)
		return "this packet belongs to another trace";
	if (h->stream_id > PTT_STREAM_RECORDS)
		return "this packet is of an unknown kind";
	if (h->packet_size % 64 || h->packet_size < HEAD * 8 || h->packet_size / 8 > UINT32_MAX ||
	    h->content_size < HEAD * 8 || h->content_size > h->packet_size)
		return "the sizes of this packet cannot be";
	if (h->timestamp_begin > h->timestamp_end)
		return "this packet ends before it begins";
	if (h->packet_size / 8 > left)
		return "this packet is cut off";
	return NULL;
}
