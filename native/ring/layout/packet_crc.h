/* SPDX-License-Identifier: MIT */
/* packet_crc.h - is the CRC of a packet right? */
#ifndef PTT_PACKET_CRC_H
#define PTT_PACKET_CRC_H

#include <stdbool.h>
#include <string.h>

#include "crc32c.h"
#include "ptt_abi.h"

/*
 * ptt_packet_crc_is_right - does a packet agree with the CRC in its head?
 * @data: the plain packet
 * @size: its bytes, at least those of a head
 * It blocks and allocates nothing, and is safe in any thread and signal handler.
 */
static inline bool ptt_packet_crc_is_right(const void *data, size_t size)
{
	const size_t at = offsetof(struct ptt_packet, crc);
	const char *packet = data;
	uint32_t found, crc = 0;

	found = ptt_crc32c(0, packet, at);
	found = ptt_crc32c(found, &crc, sizeof(crc));
	found = ptt_crc32c(found, packet + at + sizeof(crc), size - at - sizeof(crc));
	memcpy(&crc, packet + at, sizeof(crc));
	return found == crc;
}

#endif
