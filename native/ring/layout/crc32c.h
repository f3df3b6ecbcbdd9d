/* SPDX-License-Identifier: MIT */
/* crc32c.h - CRC-32C (Castagnoli), as fast as the processor can. */
/*
 * All functions are pure: safe in any thread and signal handler. The values include the usual initial and final inversion:
 * the CRC of "123456789" is 0xe3069283, and the CRC of no bytes is 0.
 */
#ifndef PTT_CRC32C_H
#define PTT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* ptt_crc32c - the CRC of some bytes followed by @size bytes at @data; @crc is the CRC of the first bytes, 0 for none. */
uint32_t ptt_crc32c(uint32_t crc, const void *data, size_t size);

/* ptt_crc32c_table - the same without special instructions; tests compare the fast functions with it. */
uint32_t ptt_crc32c_table(uint32_t crc, const void *data, size_t size);

/* ptt_crc32c_join - CRC of A followed by B, from the CRC of A and the CRC of B; costs about a microsecond. */
uint32_t ptt_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

#endif
