/* SPDX-License-Identifier: MIT */
/* segment_map.c - maps the segment at an aligned address, or a piece of a file twice; moves both in the child of a fork. */
#include "segment_map.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "../platform/page.h"

#define PRIVATE_MEMORY (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* In whole pages. */
char *ptt_segment_reserve(uint64_t size)
{
	uint64_t whole = (size + PTT_PAGE_MAX - 1) & ~(uint64_t)(PTT_PAGE_MAX - 1);
	char *base = mmap(NULL, whole + PTT_SEGMENT_ALIGN, PROT_NONE, PRIVATE_MEMORY, -1, 0);
	uint64_t before;

	if (base == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)base & (PTT_SEGMENT_ALIGN - 1);
	if (before)
		munmap(base, before);
	munmap(base + before + whole, PTT_SEGMENT_ALIGN - before);
	return base + before;
}

void *ptt_segment_map(int fd, uint64_t size)
{
	char *base = ptt_segment_reserve(size);
	int err;

	if (!base)
		return NULL;
	if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		return base;
	err = errno;
	munmap(base, size);
	errno = err;
	return NULL;
}

/*
 * Map the shared memory of @size bytes at @from a second time, at @to. Under qemu-user a second mapping is impossible:
 * there the mapping moves, and nothing is left at @from.
 */
static bool map_again(void *from, uint64_t size, void *to)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	/* an old size of 0 keeps the old mapping of shared memory */
	return mremap(from, 0, size, flags, to) != MAP_FAILED || mremap(from, size, size, flags, to) != MAP_FAILED;
}

/*
 * Leave memory for an interrupted writer of the parent: its own entry, in a segment that is closed.
 * @now: where the segment can be read
 */
static bool put_private_memory(struct ptt_segment *segment, const struct ptt_segment *now, const struct ptt_thread *self)
{
	struct ptt_segment head = *now;
	struct ptt_thread entry = {0};

	if (self)
		entry = *(const struct ptt_thread *)((const char *)now + ((const char *)self - (const char *)segment));
	if (mmap(segment, ptt_segment_present(&head), PROT_READ | PROT_WRITE, PRIVATE_MEMORY | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	head.closed = 1;
	head.collector = 0;
	*segment = head;
	if (self)
		*(struct ptt_thread *)self = entry;
	return true;
}

bool ptt_segment_leave(struct ptt_segment *segment, const struct ptt_segment *now, const struct ptt_thread *self)
{
	static struct {
		struct ptt_segment *segment;
		uint64_t size;
	} left[PTT_GENERATIONS_KEPT];
	static unsigned int next;
	/* the memory of @segment may have moved */
	uint64_t size = now->size;

	if (!put_private_memory(segment, now, self))
		return false;
	if (left[next].segment)
		munmap(left[next].segment, left[next].size);
	left[next].segment = segment;
	left[next].size = size;
	next = (next + 1) % PTT_GENERATIONS_KEPT;
	return true;
}

struct ptt_segment *ptt_segment_move(struct ptt_segment *segment, const struct ptt_thread *self)
{
	uint64_t size = segment->size;
	char *to = ptt_segment_reserve(size);
	bool moved = to && map_again(segment, size, to);

	if (to && !moved)
		munmap(to, size);
	if (!ptt_segment_leave(segment, moved ? (const struct ptt_segment *)to : segment, self)) {
		if (moved)
			munmap(to, size);
		return NULL;
	}
	return moved ? (struct ptt_segment *)to : NULL;
}

bool ptt_segment_retire(struct ptt_segment *segment)
{
	return put_private_memory(segment, segment, NULL);
}

/* ------------------------------------------------------------ a piece of a file twice */

void *ptt_mirror_map(int fd, uint64_t offset, uint64_t size)
{
	const int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
	/* reserve all addresses first, so that nothing else gets in between */
	char *base = mmap(NULL, 2 * size, PROT_NONE, PRIVATE_MEMORY, -1, 0);
	int err;

	if (base == MAP_FAILED)
		return NULL;
	if (mmap(base, size, protection, flags, fd, (off_t)offset) != MAP_FAILED &&
	    mmap(base + size, size, protection, flags, fd, (off_t)offset) != MAP_FAILED)
		return base;
	err = errno;
	munmap(base, 2 * size);
	errno = err;
	return NULL;
}

void *ptt_mirror_move(void *from, uint64_t size)
{
	char *base = from;
	static void *left[PTT_GENERATIONS_KEPT];
	static unsigned int next;
	char *to = mmap(NULL, 2 * size, PROT_NONE, PRIVATE_MEMORY, -1, 0);
	bool moved = to != MAP_FAILED && map_again(base, size, to) && map_again(base + size, size, to + size);

	if (to != MAP_FAILED && !moved)
		munmap(to, 2 * size);
	if (mmap(base, 2 * size, PROT_READ | PROT_WRITE, PRIVATE_MEMORY | MAP_FIXED, -1, 0) == MAP_FAILED) {
		if (moved)
			munmap(to, 2 * size);
		return NULL;
	}
	if (left[next])
		munmap(left[next], 2 * size);
	left[next] = base;
	next = (next + 1) % PTT_GENERATIONS_KEPT;
	return moved ? to : NULL;
}

void ptt_mirror_unmap(void *base, uint64_t size)
{
	munmap(base, 2 * size);
}
