/* SPDX-License-Identifier: MIT */
/* compact.c - see compact.h. */
#include "compact.h"

#include <string.h>

#define HEAD sizeof(struct ptt_packet)
#define PLACES (2 * PTT_COMPACT_SETS)

/* codes behind the places of the cache */
#define CODE_EVENT 248u
#define CODE_STACK 249u
#define CODE_MORE 250u
#define CODE_MORE_MOST 2u
#define CODE_ANY 253u

#define TIME_BITS (PTT_TIME_MASK << PTT_TIME_SHIFT)
#define BODY_MASK (~TIME_BITS)
#define PAYLOAD_MARKS 0xfffcu /* all bytes but the first two */

static inline uint32_t set_of(uint64_t w0, uint64_t w1)
{
	uint64_t hash = (w1 ^ w0 * UINT64_C(0xd6e8feb86659fd93) ^ w1 >> 29) * UINT64_C(0xff51afd7ed558ccd);

	return (uint32_t)((hash >> 32) * PTT_COMPACT_SETS >> 32);
}

static inline uint8_t *put_number(uint8_t *out, uint64_t value)
{
	while (value >= 0x80) {
		*out++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*out++ = (uint8_t)value;
	return out;
}

/* Return: the byte behind the number, or NULL if the codes end in it. */
static inline const uint8_t *get_number(const uint8_t *in, const uint8_t *end, uint64_t *value)
{
	uint32_t shift = 0;

	*value = 0;
	while (in < end && shift < 64) {
		uint8_t byte = *in++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return in;
		shift += 7;
	}
	return NULL;
}

static uint8_t *put_marked(uint8_t *out, const uint8_t *slot, uint32_t wanted)
{
	uint8_t *marks = out;
	uint32_t bits = 0;

	out += 2;
	for (uint32_t i = 0; i < PTT_SLOT_SIZE; i++) {
		if (!(wanted >> i & 1) || !slot[i])
			continue;
		bits |= 1u << i;
		*out++ = slot[i];
	}
	marks[0] = (uint8_t)bits;
	marks[1] = (uint8_t)(bits >> 8);
	return out;
}

static const uint8_t *get_marked(const uint8_t *in, const uint8_t *end, uint8_t *slot)
{
	uint32_t bits;

	if (end - in < 2)
		return NULL;
	bits = in[0] | (uint32_t)in[1] << 8;
	in += 2;
	for (uint32_t i = 0; i < PTT_SLOT_SIZE; i++) {
		if (!(bits >> i & 1))
			continue;
		if (in == end)
			return NULL;
		slot[i] = *in++;
	}
	return in;
}

void ptt_coder_begin(struct ptt_coder *coder, uint64_t begin)
{
	memset(coder, 0, sizeof(*coder));
	coder->time = begin & PTT_TIME_MASK;
}

/* Look for a body, and put it into the cache if it is not there. Return: its place, or PLACES if it was not there. */
static inline uint32_t find(struct ptt_coder *coder, uint64_t w0, uint64_t w1)
{
	uint32_t set = set_of(w0, w1);
	struct ptt_slot *body = &coder->body[2 * set];

	for (uint32_t way = 0; way < 2; way++) {
		if (body[way].w0 == w0 && body[way].w1 == w1) {
			coder->used[set] = (uint8_t)way;
			return 2 * set + way;
		}
	}
	coder->used[set] ^= 1;
	body[coder->used[set]] = (struct ptt_slot){w0, w1};
	return PLACES;
}

static inline void keep(struct ptt_coder *coder, uint64_t w0, uint64_t w1)
{
	uint32_t set = set_of(w0, w1);

	coder->used[set] ^= 1;
	coder->body[2 * set + coder->used[set]] = (struct ptt_slot){w0, w1};
}

static inline uint8_t *put_time(struct ptt_coder *coder, uint8_t *out, uint64_t w0)
{
	uint64_t time = w0 >> PTT_TIME_SHIFT & PTT_TIME_MASK;

	out = put_number(out, (time - coder->time) & PTT_TIME_MASK);
	coder->time = time;
	coder->w0 = w0;
	return out;
}

/* The number of the slots that follow a continuation slot, if it has a short code; else a larger number. */
static inline uint32_t followers(uint64_t w0)
{
	return (uint32_t)(w0 >> PTT_ID_BITS & 0x3f);
}

static uint8_t *pack_rare(struct ptt_coder *coder, const struct ptt_slot *slot, uint8_t *out)
{
	uint32_t id = slot->w0 & PTT_ID_MASK, place;

	if (id == PTT_ID_MORE && followers(slot->w0) <= CODE_MORE_MOST) {
		*out++ = (uint8_t)(CODE_MORE + followers(slot->w0));
		return put_marked(out, (const uint8_t *)slot, PAYLOAD_MARKS);
	}
	if (id == PTT_ID_STACK && slot->w0 == ((coder->w0 & ~(uint64_t)PTT_ID_MASK) | PTT_ID_STACK)) {
		place = find(coder, PTT_ID_STACK, slot->w1);
		if (place < PLACES) {
			*out++ = (uint8_t)place;
			return out;
		}
		*out++ = CODE_STACK;
		return put_number(out, slot->w1);
	}
	*out++ = CODE_ANY;
	return put_marked(out, (const uint8_t *)slot, 0xffff);
}

uint8_t *ptt_coder_pack(struct ptt_coder *coder, const void *slots, uint32_t count, uint8_t *out)
{
	const struct ptt_slot *slot = slots, *end = slot + count;

	for (; slot < end; slot++) {
		uint64_t w0 = slot->w0, body = w0 & BODY_MASK;
		uint32_t id = w0 & PTT_ID_MASK, place;

		if (id >= PTT_ID_STACK || !id) {
			out = pack_rare(coder, slot, out);
			continue;
		}
		place = find(coder, body, slot->w1);
		if (place < PLACES) {
			*out++ = (uint8_t)place;
		} else {
			*out++ = CODE_EVENT;
			/* the processor is in the highest bits: 24 bits of the first word without its time */
			body = (body & PTT_ID_MASK) | body >> PTT_CPU_SHIFT << PTT_ID_BITS;
			memcpy(out, &body, 3);
			memcpy(out + 3, &slot->w1, 8);
			out += 11;
		}
		out = put_time(coder, out, w0);
	}
	return out;
}

/* The slot of one of the rare codes. Return: the byte behind it, or NULL. */
static const uint8_t *unpack_rare(struct ptt_coder *coder, uint32_t code, const uint8_t *in, const uint8_t *end,
				  struct ptt_slot *slot)
{
	*slot = (struct ptt_slot){0};
	if (code == CODE_STACK) {
		in = get_number(in, end, &slot->w1);
		slot->w0 = (coder->w0 & ~(uint64_t)PTT_ID_MASK) | PTT_ID_STACK;
		keep(coder, PTT_ID_STACK, slot->w1);
		return in;
	}
	if (code > CODE_ANY)
		return NULL;
	in = get_marked(in, end, (uint8_t *)slot);
	if (code != CODE_ANY)
		slot->w0 = (slot->w0 & ~UINT64_C(0xffff)) | PTT_ID_MORE | (uint64_t)(code - CODE_MORE) << PTT_ID_BITS;
	return in;
}

bool ptt_coder_unpack(uint64_t begin, const uint8_t *in, size_t size, void *slots, uint32_t count)
{
	struct ptt_slot *slot = slots, *last = slot + count;
	const uint8_t *end = in + size;
	struct ptt_coder coder;

	ptt_coder_begin(&coder, begin);
	for (; slot < last; slot++) {
		uint64_t w0, w1, delta;
		uint32_t code;

		if (in == end)
			return false;
		code = *in++;
		if (code < PLACES) {
			w0 = coder.body[code].w0;
			w1 = coder.body[code].w1;
			coder.used[code / 2] = code & 1;
			if (w0 == PTT_ID_STACK) {
				*slot = (struct ptt_slot){(coder.w0 & ~(uint64_t)PTT_ID_MASK) | PTT_ID_STACK, w1};
				continue;
			}
		} else if (code == CODE_EVENT) {
			if (end - in < 11)
				return false;
			w0 = 0;
			memcpy(&w0, in, 3);
			memcpy(&w1, in + 3, 8);
			in += 11;
			w0 = (w0 & PTT_ID_MASK) | w0 >> PTT_ID_BITS << PTT_CPU_SHIFT;
			keep(&coder, w0, w1);
		} else {
			in = unpack_rare(&coder, code, in, end, slot);
			if (!in)
				return false;
			continue;
		}
		if (in < end && *in < 0x80)
			delta = *in++;
		else if (!(in = get_number(in, end, &delta)))
			return false;
		coder.time = (coder.time + delta) & PTT_TIME_MASK;
		coder.w0 = w0 | coder.time << PTT_TIME_SHIFT;
		*slot = (struct ptt_slot){coder.w0, w1};
	}
	return in == end;
}

/* ---------------------------------------------------------------- packets */

static uint32_t body_of(const struct ptt_packet *head)
{
	return (uint32_t)(head->packet_size / 8 - HEAD);
}

uint32_t ptt_compact_prefix(struct ptt_compact *prefix, uint8_t *codes, uint32_t size, uint32_t body)
{
	uint32_t coding = size < body ? PTT_CODING_SLOTS : PTT_CODING_NONE, padding;

	size = size < body ? size : body;
	padding = (8 - size % 8) % 8;
	if (coding == PTT_CODING_SLOTS)
		memset(codes + size, 0, padding);
	*prefix = (struct ptt_compact){
		.magic = PTT_COMPACT_MAGIC,
		.size = (uint32_t)(sizeof(*prefix) + HEAD) + size + padding,
		.coding = coding,
		.padding = padding,
	};
	return prefix->size;
}

bool ptt_coded_read(const void *data, uint64_t left, struct ptt_coded *coded)
{
	const struct ptt_compact *prefix = &coded->prefix;
	const struct ptt_packet *head = &coded->head;
	uint64_t codes, body;

	if (left < sizeof(*coded))
		return false;
	memcpy(coded, data, sizeof(*coded));
	if (prefix->magic != PTT_COMPACT_MAGIC || prefix->size > left || prefix->size < sizeof(*coded) || prefix->size % 8 ||
	    prefix->padding > 7 || prefix->coding > PTT_CODING_SLOTS || prefix->size - sizeof(*coded) < prefix->padding)
		return false;
	if (head->packet_size % 64 || head->packet_size / 8 < HEAD || head->packet_size / 8 > PTT_COMPACT_PLAIN_MAX)
		return false;
	codes = prefix->size - sizeof(*coded) - prefix->padding;
	body = body_of(head);
	if (prefix->coding == PTT_CODING_NONE)
		return codes == body;
	/* a slot takes a byte at least, so a packet from a stranger cannot become much larger than the file */
	return body % PTT_SLOT_SIZE == 0 && body / PTT_SLOT_SIZE <= codes && codes <= body;
}

bool ptt_coded_unpack(const struct ptt_coded *coded, const void *data, void *plain)
{
	const uint8_t *codes = (const uint8_t *)data + sizeof(*coded);
	uint32_t size = coded->prefix.size - (uint32_t)sizeof(*coded) - coded->prefix.padding;

	memcpy(plain, &coded->head, HEAD);
	if (coded->prefix.coding == PTT_CODING_NONE) {
		memcpy((char *)plain + HEAD, codes, size);
		return true;
	}
	return ptt_coder_unpack(coded->head.timestamp_begin, codes, size, (char *)plain + HEAD,
				body_of(&coded->head) / PTT_SLOT_SIZE);
}

uint32_t ptt_compact_encode(const void *plain, void *out)
{
	uint8_t *codes = (uint8_t *)out + sizeof(struct ptt_compact) + HEAD;
	struct ptt_compact prefix;
	uint32_t size, body;
	struct ptt_packet head;

	memcpy(&head, plain, HEAD);
	memcpy((char *)out + sizeof(prefix), &head, HEAD);
	size = body = body_of(&head);
	if (head.stream_id == PTT_STREAM_SLOTS && body % PTT_SLOT_SIZE == 0) {
		struct ptt_coder coder;

		ptt_coder_begin(&coder, head.timestamp_begin);
		size = (uint32_t)(ptt_coder_pack(&coder, (const char *)plain + HEAD, body / PTT_SLOT_SIZE, codes) - codes);
	}
	size = ptt_compact_prefix(&prefix, codes, size, body);
	if (prefix.coding == PTT_CODING_NONE) {
		memcpy(codes, (const char *)plain + HEAD, body);
		memset(codes + body, 0, prefix.padding);
	}
	memcpy(out, &prefix, sizeof(prefix));
	return size;
}
