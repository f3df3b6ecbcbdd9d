/* SPDX-License-Identifier: MIT */
/* tables.h - tables that grow, for what reads events one after another: pools, which never move, and plain arrays. */
#ifndef PTT_READER_TABLES_H
#define PTT_READER_TABLES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * A table that grows in place: address space for all it may ever hold is reserved at once, memory is used as it fills.
 * Element 0 stands for "none" and takes what cannot be stored.
 */
struct rd_pool {
	uint8_t *items;
	size_t size;
	uint32_t count;
	uint32_t room;
};

#define RD_POOL_ROOM (UINT32_C(1) << 26)
#define RD_POOL_LEAST (UINT32_C(1) << 12)

/* rd_pool_open - Return: 0 or -ENOMEM. */
static inline int rd_pool_open(struct rd_pool *pool, size_t size)
{
	/* Where address space is limited as well, less will have to do. */
	for (uint32_t room = RD_POOL_ROOM; room >= RD_POOL_LEAST; room /= 4) {
		void *items = mmap(NULL, size * room, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (items == MAP_FAILED)
			continue;
		*pool = (struct rd_pool){ items, size, 1, room };
		return 0;
	}
	return -ENOMEM;
}

static inline void rd_pool_close(struct rd_pool *pool)
{
	if (pool->items)
		munmap(pool->items, pool->size * pool->room);
}

/* rd_pool_new - Return: number of a new element, all zero; 0 if there is no room, which is an @error then. */
static inline uint32_t rd_pool_new(struct rd_pool *pool, int *error)
{
	if (__builtin_expect(pool->count == pool->room, 0)) {
		*error = -ENOMEM;
		return 0;
	}
	return pool->count++;
}

/* rd_array_reach - make room for element @number of an array of zeroes. Return: 0 or -ENOMEM. */
static inline int rd_array_reach(void **array, uint32_t *count, uint32_t number, size_t size)
{
	uint32_t want = number + 1;
	void *bigger;

	if (number < *count)
		return 0;
	if (want < *count * 2)
		want = *count * 2;
	bigger = realloc(*array, want * size);
	if (!bigger)
		return -ENOMEM;
	memset((uint8_t *)bigger + *count * size, 0, (want - *count) * size);
	*array = bigger;
	*count = want;
	return 0;
}

#endif
