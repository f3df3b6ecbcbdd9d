/* SPDX-License-Identifier: MIT */
/* unfinished.h - records that a writer has reserved and not finished. */
#ifndef PX_UNFINISHED_H
#define PX_UNFINISHED_H

#include "buffer.h"

/* px_give_up - give up a record that nobody will finish. Return: its length, or 0 if it was finished after all. */
uint32_t px_give_up(const struct px_buffer *buffer, uint64_t place);

/* px_writer_state - what the kernel says of the writer of the record at @place: 0 = it is dead, '?' = not known. */
char px_writer_state(const struct px_buffer *buffer, uint64_t place);

#endif
