/* SPDX-License-Identifier: MIT */
/* mirror.h - a piece of a file mapped twice, end to end, so that what wraps at its end is in one piece. */
#ifndef PTT_MIRROR_H
#define PTT_MIRROR_H

#include <stdint.h>

/*
 * ptt_mirror_map - map @size bytes of @fd at @offset twice, for reading and writing
 * Both are multiples of the page size. Return: the first byte, or NULL with errno set.
 */
void *ptt_mirror_map(int fd, uint64_t offset, uint64_t size);

/*
 * ptt_mirror_move - in the child of a fork: map it elsewhere, and private memory in its place
 * Return: where it is now, or NULL: then private memory has taken its place all the same, if it could.
 */
void *ptt_mirror_move(void *base, uint64_t size);

void ptt_mirror_unmap(void *base, uint64_t size);

#endif
