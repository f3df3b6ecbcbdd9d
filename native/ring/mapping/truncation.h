/* SPDX-License-Identifier: MIT */
/* truncation.h - files that become shorter while they are mapped: zeros take the place of the lost bytes, and the mapping is marked. */
/*
 * The kernel answers an access behind the end of a mapped file with SIGBUS. No check of the size beforehand helps if the
 * file is cut in between. So the first mapping installs a handler. If the fault lies in a mapping known here, the handler
 * puts zeros in place of the lost bytes and marks the mapping, and the access goes on. Zeros are no event in either kind of
 * stream, and nothing in a segment. Other faults go to the handler that was there before.
 *
 * Not for traced programs: their signal handlers are their own.
 */
#ifndef PTT_TRUNCATION_H
#define PTT_TRUNCATION_H

#include <stdbool.h>
#include <stddef.h>

struct ptt_guard;

/* ptt_guard_map - maps a whole file for reading, guarded. Return: NULL with errno set if that fails. */
struct ptt_guard *ptt_guard_map(int fd, size_t size);
/* ptt_guard_add - guards memory that is already mapped for reading and writing. Return: NULL if there is no memory. */
struct ptt_guard *ptt_guard_add(void *map, size_t size);
/* ptt_guard_remove - ends a guard, before the mapping ends; @guard may be NULL. */
void ptt_guard_remove(struct ptt_guard *guard);
/* ptt_guard_unmap - ends a guard and its mapping; nothing may read it any more. @guard may be NULL. */
void ptt_guard_unmap(struct ptt_guard *guard);
/* ptt_guard_data - the first byte of the mapping. */
const void *ptt_guard_data(const struct ptt_guard *guard);
/* ptt_guard_cut - has an access found that the file became shorter? */
bool ptt_guard_cut(const struct ptt_guard *guard);

#endif
