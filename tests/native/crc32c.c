/* SPDX-License-Identifier: MIT */
/* crc32c.c - the fast checksum against the plain one, on all sizes and alignments, and joined from parts. */
#include "layout/crc32c.h"

#include <stdio.h>
#include <stdlib.h>

#define SIZE 65536

int main(void)
{
	static unsigned char data[SIZE];
	unsigned int random = 1;

	if (ptt_crc32c(0, "123456789", 9) != 0xe3069283 || ptt_crc32c(0, "", 0) != 0) {
		puts("not CRC-32C");
		return 1;
	}
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)((random = random * 1103515245 + 12345) >> 16);
	for (size_t i = 0; i < 3000; i++) {
		size_t at = (random = random * 1103515245 + 12345) % 64;
		size_t size = i < 1100 ? i : (random = random * 1103515245 + 12345) % (SIZE - 64);
		size_t cut = size ? (random >> 8) % size : 0;
		const unsigned char *p = data + at;
		uint32_t plain = ptt_crc32c_table(0, p, size), head = ptt_crc32c(0, p, cut);

		if (ptt_crc32c(0, p, size) != plain || ptt_crc32c(head, p + cut, size - cut) != plain ||
		    ptt_crc32c_join(head, ptt_crc32c(0, p + cut, size - cut), size - cut) != plain) {
			printf("wrong: %zu bytes at %zu, cut at %zu\n", size, at, cut);
			return 1;
		}
	}
	return 0;
}
