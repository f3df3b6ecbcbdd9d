/* SPDX-License-Identifier: MIT */
/* truncation.h - files that become shorter while they are mapped: reads find zeros there, and the reader gets an error. */
/*
 * The kernel answers a read behind the end of a mapped file with SIGBUS, and no check of the size beforehand is safe
 * from a file that is cut in between. So the first mapping installs a handler: where the fault lies in a mapping known
 * here it puts zeros in place of what is gone, marks the mapping, and the read goes on. Zeros are no event in either
 * kind of stream. Faults elsewhere go where they went before.
 */
#ifndef PTTREAD_GUARD_H
#define PTTREAD_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct rd_guard;

/* rd_guard_map - maps a whole file for reading, guarded. NULL with errno set. */
struct rd_guard *rd_guard_map(int fd, size_t size);
/* rd_guard_unmap - the end of a mapping; nothing may read it any more. */
void rd_guard_unmap(struct rd_guard *guard);
const void *rd_guard_data(const struct rd_guard *guard);
/* rd_guard_cut - whether a read has found that the file had become shorter. */
bool rd_guard_cut(const struct rd_guard *guard);

#endif
