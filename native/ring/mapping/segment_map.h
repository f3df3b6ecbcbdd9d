/* SPDX-License-Identifier: MIT */
/* segment_map.h - where the segment lies in a process: found from any thread entry in it, and moved in the child of a fork. */
/*
 * A signal handler may interrupt a writer, fork, and return in the child. The interrupted writer goes on there with what it has in
 * registers, such as its parent's entry and chunk. So a writer gets from one pointer, its thread's entry, to all else in the segment.
 * In the child the segment moves. Private memory takes its old place: there such a writer finds its entry and a closed segment.
 */
#ifndef PTT_SEGMENT_MAP_H
#define PTT_SEGMENT_MAP_H

#include <stdbool.h>

#include "../layout/ptt_abi.h"

/* Private memory of earlier generations is kept: handlers that fork in handlers that fork are not nested deeper than that. */
#define PTT_GENERATIONS_KEPT 2u

/* Addresses of the segment are multiples of this, and all thread entries lie in the first so many bytes. */
#define PTT_SEGMENT_ALIGN (UINT64_C(8) << 20)

static inline char *ptt_segment_base(const struct ptt_thread *self)
{
	return (char *)((uintptr_t)self & ~(uintptr_t)(PTT_SEGMENT_ALIGN - 1));
}

static inline struct ptt_segment *ptt_segment_of(const struct ptt_thread *self)
{
	return (struct ptt_segment *)ptt_segment_base(self);
}

/* ptt_segment_map - map @size bytes of a segment's file; NULL and errno if that cannot be. */
void *ptt_segment_map(int fd, uint64_t size);

/*
 * ptt_segment_move - in the child of a fork: map the segment elsewhere, and private memory in its place
 * @self: entry of the calling thread's in the parent, or NULL
 * Return: where it is now, or NULL: then private memory has taken its place all the same, if it could.
 */
struct ptt_segment *ptt_segment_move(struct ptt_segment *segment, const struct ptt_thread *self);

/*
 * ptt_segment_retire - nobody records into it any more: have empty private memory in its place
 * Threads that have been in it go on to find their entries there, which send them to look for another one. Its addresses stay
 * taken. Return: false if there is no memory for that; then it stays as it is.
 */
bool ptt_segment_retire(struct ptt_segment *segment);

/* ------------------------------------------------------------ a piece of a file twice, end to end, so that what wraps is in one piece */

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
