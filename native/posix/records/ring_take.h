/* SPDX-License-Identifier: MIT */
/* ring_take.h - records come out, one reader at a time. */
#ifndef PX_RING_TAKE_H
#define PX_RING_TAKE_H

#include "buffer.h"

enum px_take { PX_TAKE_NONE, PX_TAKE_RECORD, PX_TAKE_UNFINISHED };

/* What the reader remembers from one record to the next; zero at first. */
struct px_reader {
	uint64_t expected; /* place of the next record, if nothing is overwritten */
	uint64_t stalled;  /* place of a record that is not being finished, */
	uint64_t since;	   /* since when; 0 = there is none */
};

/*
 * px_take - take the oldest record out
 * @to: room for the longest record
 * @gap_time: 0, or the time of the first of the events that were overwritten before this one
 * PX_TAKE_UNFINISHED: its writer has not finished it; look again.
 */
enum px_take px_take(const struct px_buffer *buffer, struct px_reader *reader, struct px_record *to,
		     uint64_t *gap_time);

/* px_note_empty - if all has been taken out of a stream that stopped when it was full, it goes on. */
void px_note_empty(const struct px_buffer *buffer);

#endif
