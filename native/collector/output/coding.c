/* SPDX-License-Identifier: MIT */
/* coding.c - the slots of a packet in fewer bytes, for compact stream files. */
#include "../collector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compact/compact.h"

struct coding {
	struct ptt_compact prefix;
	struct ptt_coder coder;
	struct iovec piece[3]; /* prefix, head, codes */
	struct iovec plain[PACKET_PIECES_MAX + 1]; /* prefix, pieces */
	uint8_t codes[PTT_COMPACT_MAX(PACKET_SIZE_MAX)];
};

int coding_init(struct ptt_collector *c, struct ptt_message *message)
{
	c->coding = malloc(sizeof(*c->coding));
	return c->coding ? 0 : fail(message, -ENOMEM, "cannot allocate room for coded packets");
}

/* code_packet - @pieces: head and slots; set to the pieces of the coded packet. Return: the size of the coded packet */
uint32_t code_packet(struct ptt_collector *c, struct iovec **pieces, uint32_t *count, uint32_t size)
{
	const struct iovec *piece = *pieces;
	const struct ptt_packet *head = piece[0].iov_base;
	struct coding *k = c->coding;
	uint32_t body = size - (uint32_t)sizeof(*head);
	uint8_t *end = k->codes;

	ptt_coder_begin(&k->coder, head->timestamp_begin);
	for (uint32_t i = 1; i < *count; i++)
		end = ptt_coder_pack(&k->coder, piece[i].iov_base, (uint32_t)(piece[i].iov_len / PTT_SLOT_SIZE), end);
	size = ptt_compact_prefix(&k->prefix, k->codes, (uint32_t)(end - k->codes), body);
	if (k->prefix.coding == PTT_CODING_NONE) {
		/* The pieces as they are: a body is whole slots, so there is no padding. */
		k->plain[0] = (struct iovec){&k->prefix, sizeof(k->prefix)};
		memcpy(&k->plain[1], *pieces, *count * sizeof(**pieces));
		*pieces = k->plain;
		++*count;
		return size;
	}
	k->piece[0] = (struct iovec){&k->prefix, sizeof(k->prefix)};
	k->piece[1] = piece[0];
	k->piece[2] = (struct iovec){k->codes, size - sizeof(k->prefix) - sizeof(*head)};
	*pieces = k->piece;
	*count = 3;
	return size;
}
