/* SPDX-License-Identifier: MIT */
/* truncation.h - files that become shorter while they are mapped: zeros stand in place of the lost bytes, and the mapping is marked. */
/*
 * The kernel answers an access behind the end of a mapped file with SIGBUS, and no check of the size beforehand helps if the file is
 * cut in between. So the first mapping installs a handler. Where the fault lies in a mapping known here, the handler puts zeros in
 * place of the lost bytes and marks the mapping, and the access goes on. Zeros are no event in either kind of stream, and nothing in a
 * segment. Faults elsewhere go where they went before.
 *
 * Not for traced programs: their signal handlers are their own.
 */
#ifndef PTT_TRUNCATION_H
#define PTT_TRUNCATION_H

#include <stdbool.h>
#include <stddef.h>

struct ptt_guard;

/* ptt_guard_map - maps a whole file for reading, guarded. NULL with errno set. */
struct ptt_guard *ptt_guard_map(int fd, size_t size);
/* ptt_guard_add - guards memory that is mapped already, for reading and writing. NULL if there is no memory for it. */
struct ptt_guard *ptt_guard_add(void *map, size_t size);
/* ptt_guard_remove - the end of a guard, before the mapping ends; @guard may be NULL. */
void ptt_guard_remove(struct ptt_guard *guard);
/* ptt_guard_unmap - the end of a guard and its mapping; nothing may read it any more. @guard may be NULL. */
void ptt_guard_unmap(struct ptt_guard *guard);
const void *ptt_guard_data(const struct ptt_guard *guard);
/* ptt_guard_cut - whether an access has found that the file had become shorter. */
bool ptt_guard_cut(const struct ptt_guard *guard);

#endif
