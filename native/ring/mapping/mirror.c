/* SPDX-License-Identifier: MIT */
/* mirror.c - maps a piece of a file twice, end to end. */
#include "mirror.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "segment_map.h"

void *ptt_mirror_map(int fd, uint64_t offset, uint64_t size)
{
	const int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
	/* first the addresses, so that nothing else gets in between */
	char *base = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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
	const int private = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	static void *left[PTT_GENERATIONS_KEPT];
	static unsigned int next;
	char *to = mmap(NULL, 2 * size, PROT_NONE, private, -1, 0);
	bool moved = to != MAP_FAILED && ptt_take_along(base, size, to) && ptt_take_along(base + size, size, to + size);

	if (to != MAP_FAILED && !moved)
		munmap(to, 2 * size);
	if (mmap(base, 2 * size, PROT_READ | PROT_WRITE, private | MAP_FIXED, -1, 0) == MAP_FAILED) {
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
