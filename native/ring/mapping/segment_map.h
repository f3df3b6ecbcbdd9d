/* SPDX-License-Identifier: MIT */
/* segment_map.h - the place of the segment in a process: found from any thread entry in it, moved in the child of a fork. */
/*
 * A signal handler may interrupt a writer, fork, and return in the child. The interrupted writer then goes on in the child
 * with the pointers in its registers, such as the parent's entry and chunk. So a writer reaches the whole segment from one
 * pointer, the entry of its thread. In the child the segment moves, and private memory takes its old place. There the
 * interrupted writer finds its entry and a closed segment.
 */
#ifndef PTT_SEGMENT_MAP_H
#define PTT_SEGMENT_MAP_H

#include <stdbool.h>

#include "../layout/ptt_abi.h"

/* Generations of private memory to keep: handlers that fork inside handlers that fork nest no deeper. */
#define PTT_GENERATIONS_KEPT 2u

/* The segment begins at a multiple of this size, and all thread entries lie in its first bytes up to this size. */
#define PTT_SEGMENT_ALIGN (UINT64_C(8) << 20)

static inline char *ptt_segment_base(const struct ptt_thread *self)
{
	return (char *)((uintptr_t)self & ~(uintptr_t)(PTT_SEGMENT_ALIGN - 1));
}

static inline struct ptt_segment *ptt_segment_of(const struct ptt_thread *self)
{
	return (struct ptt_segment *)ptt_segment_base(self);
}

/* ptt_segment_present - bytes of a segment that have memory. */
static inline uint64_t ptt_segment_present(const struct ptt_segment *segment)
{
	return segment->box ? segment->chunk_offset + (uint64_t)segment->chunks_there * segment->chunk_size : segment->size;
}

/* ptt_segment_reserve - addresses for @size bytes of a segment, without memory. Return: NULL if there are none. */
char *ptt_segment_reserve(uint64_t size) __attribute__((visibility("hidden")));

/* ptt_segment_map - map @size bytes of a segment's file. Return: NULL and errno if that fails. */
void *ptt_segment_map(int fd, uint64_t size);

/*
 * ptt_segment_move - in the child of a fork: map the segment elsewhere, and private memory in its place
 * @self: entry of the calling thread in the parent, or NULL
 * Return: the new address, or NULL. With NULL, private memory has still taken the old place, if it could.
 */
struct ptt_segment *ptt_segment_move(struct ptt_segment *segment, const struct ptt_thread *self);

/*
 * ptt_segment_leave - in the child of a fork: private memory in place of the parent's segment, with the entry of the calling
 * thread, and an end to such memory of the fork before the last
 * @now: where the segment can be read
 * @self: as above
 * Return: false if there is no memory; then the segment stays as it is.
 */
bool ptt_segment_leave(struct ptt_segment *segment, const struct ptt_segment *now, const struct ptt_thread *self)
	__attribute__((visibility("hidden")));

/*
 * ptt_segment_retire - nobody records into the segment any more: put empty private memory in its place
 * Threads that were in the segment go on to find their entries there, and look for another entry. The addresses stay taken.
 * Return: false if there is no memory; then the segment stays as it is.
 */
bool ptt_segment_retire(struct ptt_segment *segment);

/* ------------------------------------------------------------ a piece of a file twice, end to end: a record that wraps is in one piece */

/*
 * ptt_mirror_map - map @size bytes of @fd at @offset twice, for reading and writing
 * @size and @offset are multiples of the page size. Return: the first byte, or NULL with errno set.
 */
void *ptt_mirror_map(int fd, uint64_t offset, uint64_t size);

/*
 * ptt_mirror_move - in the child of a fork: map both elsewhere, and private memory in their place
 * Return: the new address, or NULL. With NULL, private memory has still taken the old place, if it could.
 */
void *ptt_mirror_move(void *base, uint64_t size);

/* ptt_mirror_unmap - end both mappings of @size bytes at @base. */
void ptt_mirror_unmap(void *base, uint64_t size);

#endif
