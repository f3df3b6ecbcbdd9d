/* SPDX-License-Identifier: MIT */
/* compact.h - the slots of a packet in fewer bytes, and back. */
/*
 * A compact stream file holds coded packets: struct ptt_compact, the head of the plain packet without a change, and a code for
 * each slot of its body. The plain packet comes back bit for bit, and its CRC says so. Each packet is coded for itself, so a
 * file that was cut off loses its last packet only.
 *
 * A code is a byte:
 *
 *   0 - 247   the body of a slot that is in the cache, at this place; for an event, the time follows
 *   248       an event that is not in the cache: its body (11 bytes), and the time
 *   249       a stack that is not in the cache: the second word of its slot, as a number
 *   250-252   a continuation slot with 0, 1 or 2 further slots behind it: two bytes of marks, and the payload bytes that are not 0
 *   253       any slot: two bytes of marks, and the bytes that are not 0
 *
 * The body of a slot is all but its time. The slot of a stack repeats the time and the processor of its event, so its body is
 * its second word. A time is the difference to the time of the event before it, modulo 2^40. Numbers have 7 bits in each byte,
 * the low bits first; the high bit says that more follow. The bits of marks are the bytes that are not 0.
 *
 * The cache has 124 sets of two places. A hash of a body chooses the set. A body that is not in the cache replaces the place of
 * its set that was not used last.
 *
 * All functions are pure: they block and allocate nothing, and are safe in any thread.
 */
#ifndef PTT_COMPACT_H
#define PTT_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../layout/ptt_abi.h"

#define PTT_COMPACT_SETS 124u

/* The cache of a packet, and the slot before. */
struct ptt_coder {
	struct ptt_slot body[2 * PTT_COMPACT_SETS];
	uint8_t used[PTT_COMPACT_SETS]; /* the place of the set that was used last */
	uint64_t w0;   /* first word of the event before */
	uint64_t time; /* of that event */
};

/* ptt_coder_begin - before the first slot of a packet; @begin: timestamp_begin of the packet */
void ptt_coder_begin(struct ptt_coder *coder, uint64_t begin);

/*
 * ptt_coder_pack - code the next slots of a packet
 * @out: room for PTT_COMPACT_SLOT_MAX bytes for each slot
 * Return: the end of the codes
 */
uint8_t *ptt_coder_pack(struct ptt_coder *coder, const void *slots, uint32_t count, uint8_t *out);
#define PTT_COMPACT_SLOT_MAX 19u

/*
 * ptt_coder_unpack - the slots of a whole packet from their codes
 * @begin: timestamp_begin of the packet
 * @slots: room for @count slots
 * Return: false if the codes are not the codes of @count slots. Any bytes are safe.
 */
bool ptt_coder_unpack(uint64_t begin, const uint8_t *codes, size_t size, void *slots, uint32_t count);

/* The beginning of a coded packet: a copy, because others may change the file meanwhile. */
struct ptt_coded {
	struct ptt_compact prefix;
	struct ptt_packet head;
};
_Static_assert(sizeof(struct ptt_coded) == sizeof(struct ptt_compact) + sizeof(struct ptt_packet), "as in the file");

/*
 * ptt_coded_read - read the beginning of the coded packet at @data
 * @left: number of bytes there; at least sizeof(*coded)
 * Return: false if no plausible coded packet begins there, or it is cut off.
 */
bool ptt_coded_read(const void *data, uint64_t left, struct ptt_coded *coded);

/*
 * ptt_coded_unpack - the plain packet from the coded packet at @data
 * @plain: room for packet_size of the head
 * Return: false if the codes are wrong. The CRC of the plain packet is not checked.
 */
bool ptt_coded_unpack(const struct ptt_coded *coded, const void *data, void *plain);

/*
 * ptt_compact_encode - code the plain packet at @plain
 * @out: room for PTT_COMPACT_MAX(packet_size in bytes)
 * Return: the size of the coded packet
 */
uint32_t ptt_compact_encode(const void *plain, void *out);

/*
 * ptt_compact_prefix - fill in the beginning of a coded packet, and pad its codes
 * @codes: the codes, with room for 8 further bytes
 * @size: bytes of codes; the size of the body if it has none
 * @body: bytes of the body of the plain packet. If the codes are not shorter, the coding is PTT_CODING_NONE, and the caller puts
 *        the body in place of the codes, and zeros behind it as the prefix says.
 * Return: the size of the coded packet
 */
uint32_t ptt_compact_prefix(struct ptt_compact *prefix, uint8_t *codes, uint32_t size, uint32_t body);

#endif
