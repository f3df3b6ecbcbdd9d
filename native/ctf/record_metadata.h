/* SPDX-License-Identifier: MIT */
/* record_metadata.h - the metadata of a trace of classic records that no recorder has written. */
#ifndef PTT_RECORD_METADATA_H
#define PTT_RECORD_METADATA_H

#include <stdint.h>

/* Which trace it is, and when it began by two clocks. */
struct put_identity {
	uint8_t uuid[16];
	int64_t start_unix_ns;
	uint64_t start_clock;
};

/* put_record_metadata - the TSDL text, in the directory @dir; @handler is named in it. Return: 0 or -errno. */
int put_record_metadata(int dir, const char *handler, const struct put_identity *identity)
	__attribute__((visibility("hidden")));

#endif
